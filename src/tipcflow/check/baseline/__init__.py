"""Is a number worse than its accepted predecessors? Baseline, level, comparison, pins, attribution."""

"""Where a suite deviates from what its params file says, by name."""

"""Execution of runs: phases, steps, jobs on nodes, leases, verdicts, maintenance (docs/architecture.md).

Public: `events`, `progress`, `request`.
"""

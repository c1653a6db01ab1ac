"""Plans identical to what a suite's bash scripts run.

Public: nothing.
"""

"""Two or three runs of a chain side by side: what differs, metrics, steps, legs and checks.

Public: `metrics`, `model`, `parts`, `tables`.
"""

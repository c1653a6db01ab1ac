"""The metrics of a chain over its runs, with baseline, smallest detectable change and marks.

Public: `history`, `series`, `tables`.
"""

"""Storage of sample series: packing, summaries, retention.

Public: nothing.
"""

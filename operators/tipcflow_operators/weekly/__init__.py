"""The DAG `weekly`: selects chains, certifies them one after the other, writes the summary.

Public: `dag`, `turn`.
"""

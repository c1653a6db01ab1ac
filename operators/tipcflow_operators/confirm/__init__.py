"""The DAG `confirm`: measures suspected regressions again.

Public: `dag`.
"""

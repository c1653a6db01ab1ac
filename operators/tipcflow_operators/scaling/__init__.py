"""The DAG `scaling`: trains on each topology of a cluster, and reports speed-up and efficiency.

Public: `dag`.
"""

"""A scaling chain: which topologies are trained, and what their runs show.

`tipcflow scaling run` and the DAG `scaling` differ only in how they start the runs.

Public: `result`, `series`, `speeds`.
"""

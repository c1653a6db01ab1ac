"""The DAG `bisect`: searches for the commit that made a chain slower, less accurate, or fail.

Public: `dag`, `start`.
"""

"""The DAG `pull_request`: certifies changes on GitHub.

Public: `dag`, `missed`.
"""

"""The DAG `maintenance`: retention, sweeps and reconciliation.

Public: `dag`.
"""

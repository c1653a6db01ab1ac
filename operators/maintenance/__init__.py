"""The DAG `maintenance`: retention, sweeps and reconciliation."""

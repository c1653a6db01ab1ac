"""Class path that Airflow stored for deferred confirmation tasks."""

from tipcflow_operators.triggers.dag_run import DagRunTrigger

__all__ = ["DagRunTrigger"]

"""Class path in `[core] executor`."""

from tipcflow_operators.airflow.executor import LocalExecutor

__all__ = ["LocalExecutor"]

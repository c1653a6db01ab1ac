"""Class path that Airflow stored for deferred tasks of weekly runs."""

from tipcflow_operators.weekly.turn import TurnTrigger

__all__ = ["TurnTrigger"]

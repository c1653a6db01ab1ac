"""Class paths that Airflow stored for deferred tasks."""

from tipcflow_operators.triggers import JobTrigger, LeaseTrigger, StepTrigger

__all__ = ["JobTrigger", "LeaseTrigger", "StepTrigger"]

"""Deferred waits: a job on a node, a lease, a step of another task, another DAG run.

Airflow stores a deferred trigger by its class path, so the paths of this package stay as they are.
"""

from operators.triggers.job_lease_step import JobTrigger, LeaseTrigger, StepTrigger

__all__ = ["JobTrigger", "LeaseTrigger", "StepTrigger"]

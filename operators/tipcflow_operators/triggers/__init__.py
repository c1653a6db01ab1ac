"""Deferred waits: a job on a node, a lease, an allocation, a step of another task, another DAG run.

Airflow stores a deferred trigger by its class path and resumes it after an upgrade. The stored paths
`tipcflow_operators.triggers.AllocationTrigger`, `JobTrigger`, `LeaseTrigger` and `StepTrigger` are names of this
package: keep them, whatever module holds the class.

Public: `__all__`, `allocation`, `cancelled`, `dag_run`, `job`, `lease`, `step`, `waits`.
"""

from tipcflow_operators.triggers.allocation import AllocationTrigger
from tipcflow_operators.triggers.job import JobTrigger
from tipcflow_operators.triggers.lease import LeaseTrigger
from tipcflow_operators.triggers.step import StepTrigger

__all__ = ["AllocationTrigger", "JobTrigger", "LeaseTrigger", "StepTrigger"]

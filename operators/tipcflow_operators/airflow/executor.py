"""LocalExecutor that imports modules before it forks workers and tracks the tasks that it has started.

A task is forked from a worker, and a worker from the scheduler. Modules not yet imported there are imported by
every task, which cost half a second of CPU per task, and ten times as long while a training used the CPUs.

Airflow's LocalExecutor does not record which tasks its workers have (`running` stays empty), and it cannot revoke
one. The scheduler therefore fails a deferred task that resumes before its first process has ended (`has_task` is
False), and a task whose worker died before the task began stays `queued` for good.
"""

import logging
from collections import Counter
from typing import Any

from tipcflow_operators.airflow import internals
from tipcflow_operators.airflow.preload import warm

_LOG = logging.getLogger(__name__)


class LocalExecutor(internals.WorkloadTracking, internals.LocalExecutor):
    """Airflow's LocalExecutor with preloaded modules; Airflow recognizes local executors by this class name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Workloads that workers have. A deferred task that resumes before its first process has ended has two.
        self._in_flight: Counter[Any] = Counter()

    def start(self) -> None:
        """Preload modules, then fork the workers."""
        warm()
        super().start()

    def count_workload(self, key: Any) -> None:
        """Count a workload that a worker gets."""
        self._in_flight[key] += 1

    def change_state(self, key: Any, state: Any, info: Any = None, remove_running: bool = True) -> None:
        """Record the state of a workload; the end of a deferred task's first process does not end its second."""
        if state == internals.TaskInstanceState.RUNNING:
            super().change_state(key, state, info, remove_running=False)
            return
        self._in_flight[key] -= 1
        if self._in_flight[key] > 0:
            _LOG.info("%s ended with state %s; the task has been resumed in another process", key, state)
            return
        del self._in_flight[key]
        super().change_state(key, state, info, remove_running)

    def revoke_task(self, *, ti: Any) -> None:
        """Release a task that is `queued` for longer than `[scheduler] task_queued_timeout`, to requeue it.

        Its worker died before the task began, or its result was lost. The scheduler requeues only tasks of
        executors that have this method.
        """
        self.forget_task(ti.key)
        del self._in_flight[ti.key]

"""Models of Airflow's responses; unused fields are ignored."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tipcflow.domain import run_id_of, short_run_id_of


class _Answer(BaseModel):
    """Ignores unknown fields, because Airflow adds fields with every release."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class RunState(StrEnum):
    """Airflow's state of a DAG run; not the status of a run, which results from the checks."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"

    @property
    def ended(self) -> bool:
        """Whether the state is final, unless a user clears the run."""
        return self in (RunState.SUCCESS, RunState.FAILED)


class DagRun(_Answer):
    """One run of a DAG.

    Attributes:
        run_id: Airflow's id, unique within the DAG.
        run_after: earliest start; does not change when the run is cleared.
        conf: the params given at the trigger, without defaults.
    """

    dag_id: str
    run_id: str = Field(alias="dag_run_id")
    state: RunState
    run_after: datetime
    queued_at: datetime | None = None
    start_date: datetime | None = None
    end_date: datetime | None = None
    conf: dict[str, Any] | None = None
    note: str | None = None

    @property
    def run(self) -> str:
        """The tipcflow run ID, the key in the metrics database (`run_id_of`)."""
        return self.runs[0]

    @property
    def runs(self) -> tuple[str, str]:
        """The same, then the run ID that Airflow with an earlier version of tipcflow gives the run."""
        names = self.dag_id, self.run_id, self.run_after
        return run_id_of(*names), short_run_id_of(*names)


class TaskInstance(_Answer):
    """One task instance of a DAG run, last attempt.

    Attributes:
        map_index: -1 for a task that is not mapped.
        rendered_map_index: a mapped task's name, the node's; None until it has run.
        state: Airflow's state; None before it is scheduled.
        scheduled_when, queued_when, start_date, end_date: timestamps of its states.
        duration: seconds from start to end, None until it ends.
    """

    task_id: str
    dag_id: str
    run_id: str = Field(alias="dag_run_id")
    map_index: int = -1
    rendered_map_index: str | None = None
    state: str | None = None
    try_number: int = 0
    operator: str | None = None
    scheduled_when: datetime | None = None
    queued_when: datetime | None = None
    start_date: datetime | None = None
    end_date: datetime | None = None
    duration: float | None = None
    note: str | None = None


class _Tag(_Answer):
    name: str


class Dag(_Answer):
    """A DAG as Airflow lists it.

    Attributes:
        has_import_errors: the last import of its file failed; an older version is listed.
    """

    dag_id: str
    dag_display_name: str = ""
    is_paused: bool
    is_stale: bool = False
    has_import_errors: bool = False
    fileloc: str = ""
    tags: tuple[_Tag, ...] = ()

    @property
    def name(self) -> str:
        """The name in the UI; for the DAG of a chain, the chain's name."""
        return self.dag_display_name or self.dag_id

    @property
    def tag_names(self) -> tuple[str, ...]:
        """Its tags, in the order in which Airflow lists them."""
        return tuple(tag.name for tag in self.tags)


class ImportFault(_Answer):
    """An import error of a DAG file, with the time of the last attempt."""

    filename: str
    stack_trace: str
    timestamp: datetime


class Health(_Answer):
    """Component -> `healthy`, `unhealthy`, or '' if it never ran."""

    components: dict[str, str]

    def missing(self, *needed: str) -> tuple[str, ...]:
        """The unhealthy components among `needed`, or among all reported ones."""
        return tuple(name for name in needed or self.components if self.components.get(name) != "healthy")


class AuditedAction(_Answer):
    """An action of a user, as the Certification page lists it; `about` names the DAG run."""

    who: str
    action: str
    about: str


class Audited(_Answer):
    """Actions of users, newest first."""

    entries: tuple[AuditedAction, ...]

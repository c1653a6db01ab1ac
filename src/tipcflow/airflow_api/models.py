"""What Airflow answers, as far as it is used here; fields that are not named here are passed over."""

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tipcflow.domain import run_id_of


class _Answer(BaseModel):
    """Airflow adds fields with every release, so that unknown ones are no error here."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class RunState(StrEnum):
    """Airflow's state of a DAG run; not the status of a run, which the checks give."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen, unless a person clears the run."""
        return self in (RunState.SUCCESS, RunState.FAILED)


class DagRun(_Answer):
    """One run of a DAG.

    Attributes:
        run_id: Airflow's id, unique within the DAG.
        run_after: when it may start; stays when the run is cleared and runs again.
        conf: the params that it was triggered with, without defaults.
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
        """The run of ours that it is: the row in the metrics database (`run_id_of`)."""
        return run_id_of(self.dag_id, self.run_id, self.run_after)


class TaskInstance(_Answer):
    """One task of a DAG run, last try of it.

    Attributes:
        map_index: -1 for a task that is not mapped.
        rendered_map_index: a mapped task's name, the node's; None until it has run.
        state: Airflow's word; None before it is scheduled.
        scheduled_when, queued_when, start_date, end_date: the stations of its life.
        duration: seconds from start to end, None while it has not ended.
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
        has_import_errors: its file could not be read the last time; an older reading of it is listed.
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
        """What the UI calls it: the chain's name, for the DAG of a chain."""
        return self.dag_display_name or self.dag_id

    @property
    def tag_names(self) -> tuple[str, ...]:
        """Its tags, in the order in which Airflow lists them."""
        return tuple(tag.name for tag in self.tags)


class ImportFault(_Answer):
    """A DAG file that could not be read, when that was noticed last."""

    filename: str
    stack_trace: str
    timestamp: datetime


class Health(_Answer):
    """Component -> `healthy`, `unhealthy` or '' when it says nothing (it never ran)."""

    components: dict[str, str]

    def missing(self, *needed: str) -> tuple[str, ...]:
        """The components that are not healthy, of those named or else of all that Airflow told of."""
        return tuple(name for name in needed or self.components if self.components.get(name) != "healthy")

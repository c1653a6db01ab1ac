"""A run as the Certification page tells it: `GET <airflow>/certification/api/runs/<run>`."""

from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from tipcflow.domain import CheckResult, Run, Status


def _status(word: Any) -> Status | None:
    """A word for what goes on (`running`, `waiting`, null) is no status yet."""
    return Status(word) if word in set(Status) else None


def _only(model: type[BaseModel]) -> BeforeValidator:
    """Drop what a newer page tells in addition: whoever asks from a CI host may be older than it."""

    def known(told: Any) -> Any:
        return {key: told[key] for key in told if key in model.model_fields} if isinstance(told, dict) else told

    return BeforeValidator(known)


def _names(told: Any) -> Any:
    return ", ".join(map(str, told)) if isinstance(told, list | tuple) else told


_Said = Annotated[Status | None, BeforeValidator(_status)]


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ToldStep(_Told):
    """One planned step; no status while it waits or goes on. `seconds` of its longest job."""

    id: str
    status: _Said = None
    reason: str = ""
    kind: str = ""
    nodes: Annotated[str, BeforeValidator(_names)] = ""
    seconds: float | None = None


class ToldLeg(_Told):
    """One planned leg of a step."""

    step: str
    id: str = Field(validation_alias=AliasChoices("id", "leg"))
    status: _Said = None
    reason: str = ""
    settings: str = ""
    latency_ms: float | None = None


class Confirming(_Told):
    """What a run's verdict waits for: a run that measures once more; `keys` are steps, or step/leg.

    `dag_run_id` is Airflow's, of the DAG `confirm`.
    """

    run: str
    keys: tuple[str, ...] = ()
    until: float = 0.0
    dag_run_id: str = ""


class RunFacts(_Told):
    """What is known of a run so far; `run.status` is None until it is judged.

    Attributes:
        neutral: whether it is `unconfirmed` and its policy says that this does not block.
    """

    run: Annotated[Run, _only(Run)]
    confirming: Confirming | None = None
    checks: tuple[Annotated[CheckResult, _only(CheckResult)], ...] = ()
    steps: tuple[ToldStep, ...] = ()
    legs: tuple[ToldLeg, ...] = ()
    certificate: dict[str, Any] | None = None
    verdict_markdown: str | None = None
    neutral: bool = False

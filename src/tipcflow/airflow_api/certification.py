"""A run as reported by the Certification page: `GET <airflow>/certification/api/runs/<run>`."""

from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from tipcflow.domain import CheckResult, Run, Status


def _status(word: Any) -> Status | None:
    """The status, or None for a state before it (`running`, `waiting`, null)."""
    return Status(word) if word in set(Status) else None


def _only(model: type[BaseModel]) -> BeforeValidator:
    """Ignore fields of a newer Certification page: the client on a CI host may be older."""

    def known(told: Any) -> Any:
        return {key: told[key] for key in told if key in model.model_fields} if isinstance(told, dict) else told

    return BeforeValidator(known)


def _names(told: Any) -> Any:
    return ", ".join(map(str, told)) if isinstance(told, list | tuple) else told


_Said = Annotated[Status | None, BeforeValidator(_status)]


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class ToldStep(_Told):
    """One planned step; no status while it is waiting or running. `seconds` is the time of its longest job."""

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
    """The confirmation run that a verdict waits for; `keys` are steps, or step/leg.

    `dag_run_id` is the id of the run of DAG `confirm`.
    """

    run: str
    keys: tuple[str, ...] = ()
    until: float = 0.0
    dag_run_id: str = ""


class RunFacts(_Told):
    """The current facts of a run; `run.status` is None until it is judged.

    Attributes:
        neutral: whether it is `unconfirmed` and its policy makes that neutral.
    """

    run: Annotated[Run, _only(Run)]
    confirming: Confirming | None = None
    checks: tuple[Annotated[CheckResult, _only(CheckResult)], ...] = ()
    steps: tuple[ToldStep, ...] = ()
    legs: tuple[ToldLeg, ...] = ()
    certificate: dict[str, Any] | None = None
    verdict_markdown: str | None = None
    neutral: bool = False

"""Models of the Certification page's JSON API: the page writes them, the client of `tipcflow trigger` reads them.

A client may be older or newer than the page: both ignore unknown fields, and a status is a word.
"""

from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from tipcflow.domain import CheckResult, Run, Status


def _known_fields(model: type[BaseModel]) -> BeforeValidator:
    """Ignore fields of a newer page in a model that forbids unknown fields."""

    def known(value: Any) -> Any:
        return (
            {key: value[key] for key in value if key in model.model_fields} if isinstance(value, dict) else value
        )

    return BeforeValidator(known)


def _names(value: Any) -> Any:
    return tuple(filter(None, value.split(", "))) if isinstance(value, str) else value


ReportedRun = Annotated[Run, _known_fields(Run)]
ReportedCheck = Annotated[CheckResult, _known_fields(CheckResult)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _WithStatus(_Model):
    """`status`: a status, `running`, `waiting`, or None (pages before 2026-11-22)."""

    status: str | None = None

    @property
    def final(self) -> Status | None:
        """The status; None before it, and for statuses of a newer page."""
        return Status(self.status) if self.status in set(Status) else None


class StepFacts(_WithStatus):
    """One planned step. `seconds`: time of its longest job, 0 if none ended; `attempts`: 0 if not started."""

    id: str
    kind: str = ""
    reason: str = ""
    nodes: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    seconds: float | None = None
    attempts: int = 0


class LegFacts(_WithStatus):
    """One planned leg of a step.

    Attributes:
        settings: the declared settings as text; `declared`: the same by name.
        latency_ms: median per batch; None if not measured.
    """

    step: str
    id: str = Field(validation_alias=AliasChoices("id", "leg"))
    reason: str = ""
    settings: str = ""
    declared: dict[str, Any] = {}
    latency_ms: float | None = None


class Confirming(_Model):
    """The request for a confirm run.

    Attributes:
        run: id of the confirm run.
        keys: suspected parts: step id, or step id + '/' + leg id.
        until: deadline of the confirmation, seconds since the epoch.
        refused: why the confirmation was cancelled, '' if it was not.
        dag_run_id: id of the run of DAG `confirm`; '' for a run of the CLI.
        earlier: ids of earlier confirm runs of the same run, which all showed the change.
    """

    run: str
    keys: tuple[str, ...] = ()
    until: float = 0.0
    refused: str = ""
    dag_run_id: str = ""
    earlier: tuple[str, ...] = ()


class RunFacts(_Model):
    """`GET /api/runs/<run>`: the current facts of a run; `run.status` is None until it is judged.

    Attributes:
        confirming: the confirm run that the verdict waits for.
        neutral: whether the run is `unconfirmed` and its policy does not block on that.
        certificate: None until it is written.
        verdict_markdown: the verdict for a pull request; None until the run is judged.
    """

    run: ReportedRun
    neutral: bool = False
    confirming: Confirming | None = None
    checks: tuple[ReportedCheck, ...] = ()
    steps: tuple[StepFacts, ...] = ()
    legs: tuple[LegFacts, ...] = ()
    certificate: dict[str, Any] | None = None
    verdict_markdown: str | None = None


class RunList(_Model):
    """`GET /api/runs`: runs, newest first, with truncated reasons. `total`: the number of all matches."""

    runs: tuple[ReportedRun, ...] = ()
    total: int = 0


class CurveFacts(_Model):
    """The training losses of one process, as `report.curves.Curve`.

    Attributes:
        short: the step's short name.
        iterations: the iteration of each x, counted over epochs; empty if the log has none.
    """

    step: str
    short: str
    name: str
    x: tuple[float, ...] = ()
    y: tuple[float | None, ...] = ()
    broken: tuple[float, ...] = ()
    total: int = 0
    iterations: tuple[float, ...] = ()


class Curves(_Model):
    """`GET /api/runs/<run>/curves`."""

    curves: tuple[CurveFacts, ...] = ()


class BuildRun(_Model):
    """A run that certifies a framework build.

    Attributes:
        repository: `owner/name` whose file in configs/repositories declares the chain.
        mode, cluster, policy: params of the run.
    """

    chain: str
    repository: str
    mode: str
    cluster: str
    policy: str


class BuildRuns(_Model):
    """`GET /api/builds`: the runs that certify a build. `framework`: its distribution and version."""

    framework: str
    runs: tuple[BuildRun, ...]

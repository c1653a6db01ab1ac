"""Checks: one question, one answer, with its reason; and the facts they are asked of."""

from typing import Any

from tipcflow.domain.base import Frozen
from tipcflow.domain.masking import Masked
from tipcflow.domain.node import NodeFacts
from tipcflow.domain.numbers.measurement import Measurement
from tipcflow.domain.plan import Plan
from tipcflow.domain.run.exit_record import ExitRecord
from tipcflow.domain.run.failure import Failure
from tipcflow.domain.status import Status


class CheckResult(Frozen):
    """The answer to one question.

    Attributes:
        check: the check's name (`loss.finite`, `parity.onednn`, …).
        step, leg, metric: what it is about; '' when it is about the whole run.
        reason: why, in one sentence with the numbers.
        gating: whether it counts towards the run's status.
        values: the numbers it was judged by, for the page and the certificate.
    """

    schema_version: int = 1
    check: str
    status: Status
    reason: Masked
    step: str = ""
    leg: str = ""
    metric: str = ""
    gating: bool = True
    values: dict[str, Any] = {}


class RankReport(Frozen):
    """What one training process said of its place in the world ('' and None where it did not say)."""

    node: str = ""
    rank: int
    world_size: int
    backend: str = ""
    device: str = ""
    precision: str = ""
    seed: int | None = None


class AutologReport(Frozen):
    """The last AutoLog report of a leg.

    Attributes:
        at: when its first line was printed, as seconds since the epoch in a time zone that is not known; -1 where
            its lines have no date.
        timed: whether it has a time: a report that was cut off has none.
    """

    at: float = -1.0
    timed: bool = True


class LogLines(Frozen):
    """How many lines of a training's logs were recognised, over all nodes and ranks; blank lines do not count.

    Attributes:
        recognised: lines of training or evaluation.
        unknown: lines of no known kind.
    """

    recognised: int = 0
    unknown: int = 0

    def __add__(self, other: "LogLines") -> "LogLines":
        recognised, unknown = self.recognised + other.recognised, self.unknown + other.unknown
        return LogLines(recognised=recognised, unknown=unknown)

    @property
    def share(self) -> float:
        """Recognised lines of all; 0 without lines."""
        return self.recognised / max(1, self.recognised + self.unknown)


class Facts(Frozen):
    """Everything that is known of a finished run, before it is judged.

    Attributes:
        records: exit records of all jobs and legs, last attempt of each.
        step_status, leg_status: step id, and (step id + '/' + leg id), -> status.
        step_reason: step id, or step id + '/' + leg id, -> reason, where there is one to give.
        predictions: step id + '/' + leg id -> image name -> class scores.
        autolog: step id + '/' + leg id -> AutoLog fields as printed.
        reports: step id + '/' + leg id -> when that report was printed, and whether it is whole.
        reporter: which AutoLog wrote the reports: 'auto_log <version>' or 'tipcflow-sample', '' when none.
        engine: step id + '/' + leg id -> the settings that the inference process said it really used.
        ranks: step id -> what its training processes said of themselves, over all nodes.
        lines: step id -> how many lines of its training logs were recognised.
        cut: step id -> what of its files was not read, in words.
        failures: step id -> why its last attempt did not end well, where it did not.
    """

    run: str
    plan: Plan
    records: tuple[ExitRecord, ...] = ()
    node_facts: tuple[NodeFacts, ...] = ()
    measurements: tuple[Measurement, ...] = ()
    step_status: dict[str, Status] = {}
    leg_status: dict[str, Status] = {}
    step_reason: dict[str, str] = {}
    predictions: dict[str, dict[str, tuple[float, ...]]] = {}
    autolog: dict[str, dict[str, str]] = {}
    reports: dict[str, AutologReport] = {}
    reporter: str = ""
    engine: dict[str, dict[str, str]] = {}
    ranks: dict[str, tuple[RankReport, ...]] = {}
    lines: dict[str, LogLines] = {}
    cut: dict[str, tuple[str, ...]] = {}
    failures: dict[str, Failure] = {}

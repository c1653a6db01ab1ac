"""Documents of a run: small typed values that its tasks store for later tasks, checks and pages.

A document is stored as JSON under its `NAME`. Documents are only ever extended by fields with defaults: rows of
earlier versions load, and fields of later versions are ignored. Documents with types of `config` are in
`tipcflow.config.run_documents`, the request is in `tipcflow.execute.request`.
"""

import itertools
from collections.abc import Iterable
from typing import Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, RootModel, ValidationError

from tipcflow.domain.base import STORED, Record
from tipcflow.domain.build import FrameworkBuild
from tipcflow.domain.check import AutologReport, LogLines, PrintedProgress, RankReport
from tipcflow.domain.errors import InfraError
from tipcflow.domain.expectation import Expectation
from tipcflow.domain.keys import (
    AttemptKey,
    EvidenceKey,
    LegKey,
    MemberKey,
    MetricKey,
    PartKey,
    PredictionKey,
    WaitKey,
)
from tipcflow.domain.masking import Masked, MaskedTexts
from tipcflow.domain.node import Cluster
from tipcflow.domain.numbers.history import ConfirmValues
from tipcflow.domain.run.attempt import Attempt
from tipcflow.domain.run.failure import Failure, Suspicion
from tipcflow.domain.status import Status

T = TypeVar("T")


class DocumentError(InfraError):
    """A stored document is invalid."""


class Document(BaseModel):
    """Base of all documents.

    Attributes:
        NAME: the name that it is stored under.
    """

    NAME: ClassVar[str]

    # Built at first use: most processes need few of these types.
    model_config = ConfigDict(frozen=True, defer_build=True)

    @classmethod
    def load(cls, run: str, body: Any) -> Self:
        """Return the document of a stored JSON value; unknown fields are ignored.

        Args:
            run: id of the run, for the error.

        Raises:
            DocumentError: the value is invalid; names run, document and field.
        """
        try:
            return cls.model_validate(body, extra="ignore", context=STORED)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            # What follows "[key]" names the types that the key was tried as.
            places = itertools.takewhile(lambda part: part != "[key]", first["loc"])
            field = ".".join(map(str, places)) or "the document"
            reason = first.get("ctx", {}).get("error") or f"{first['msg']}; found {first['input']!r:.120}"
            raise DocumentError(f"run {run}: document {cls.NAME!r} is invalid: {field}: {reason}") from error

    def body(self) -> Any:
        """Return the JSON value to store; nan and inf stay floats."""
        return self.model_dump(mode="json")


class Fields(Document):
    """A document that is a JSON object with fixed fields."""

    schema_version: int = 1


class Root(Document, RootModel[T], Generic[T]):
    """A document that is one value; `root` is the value."""


class LeaseDocument(Fields):
    """The run's lease: its fence, and when it was acquired by the database's clock."""

    NAME: ClassVar[str] = "lease"
    fence: int = 0
    at: float = 0.0


class AirflowDocument(Fields):
    """The DAG run that executes the run, and the user who has stopped it: '' for none or an unknown one."""

    NAME: ClassVar[str] = "airflow"
    dag_id: str
    run_id: str
    stopped_by: str = ""


class ClusterDocument(Root[Cluster]):
    """The cluster as of the resolution of the run."""

    NAME: ClassVar[str] = "cluster"


class BuildDocument(Root[FrameworkBuild]):
    """The framework build that the run installs."""

    NAME: ClassVar[str] = "build"


class SourceDocument(Fields):
    """The suite's snapshot, and hashes of both versions of the params file.

    Attributes:
        sha256: hash of the snapshot.
        names_sha256: hash of the list of its files; '' in runs of older versions.
        mark: name of the run's mark next to the snapshot; '' with an object store, and in runs of older versions.
        params_sha256: of the executed params file.
        catalog_sha256: of the catalog's params file, '' without one.
    """

    NAME: ClassVar[str] = "source"
    commit: str = ""
    sha256: str
    names_sha256: str = ""
    mark: str = ""
    params_file: str = ""
    params_text: str = ""
    params_sha256: str = ""
    catalog_sha256: str = ""


class MergeBaseDocument(Fields):
    """The merge base of a tested change. A run with this document joins no other history.

    Attributes:
        commit: the merge base.
        commits: commits whose runs are the change's history.
    """

    NAME: ClassVar[str] = "base"
    commit: str
    commits: tuple[str, ...] = ()


class IncomparableDocument(Fields):
    """A run with this document is not compared and joins no history; `why` is the reason."""

    NAME: ClassVar[str] = "incomparable"
    why: Masked = ""


class QuarantinedDocument(Fields):
    """The numbers of the quarantines that cover failures of the run. A run with this document joins no history."""

    NAME: ClassVar[str] = "quarantined"
    numbers: tuple[int, ...] = ()


class ExpectedDocument(Root[tuple[Expectation, ...]]):
    """The evidence that the run must produce."""

    NAME: ClassVar[str] = "expected"


class HangDocument(Root[float]):
    """Seconds of silence after which a training counts as hung: every task creates the same job."""

    NAME: ClassVar[str] = "hang_s"


class WaitsDocument(Root[dict[WaitKey, float]]):
    """Wait of a step for its slots -> end of the wait, by the database's clock."""

    NAME: ClassVar[str] = "waits"
    root: dict[WaitKey, float] = {}


class FailuresDocument(Root[dict[AttemptKey | Literal["before"], Failure]]):
    """Failures of attempts, of steps that did not start (attempt 0), and the one before the run's first step."""

    NAME: ClassVar[str] = "failures"
    root: dict[AttemptKey | Literal["before"], Failure] = {}

    BEFORE: ClassVar[Literal["before"]] = "before"

    @property
    def before(self) -> Failure | None:
        """The failure that ended the run before its first step; None if there is none."""
        return self.root.get(self.BEFORE)

    def of(self, attempts: Iterable[Attempt]) -> dict[AttemptKey, Failure]:
        """Return the failures of failed attempts, and as attempt 0 those of steps without any attempt."""
        keys = [AttemptKey(attempt.step, attempt.attempt) for attempt in attempts]
        tried = {key.step for key in keys}
        keys += [key for key in self.root if key != self.BEFORE and key.attempt == 0 and key.step not in tried]
        return {key: self.root[key] for key in keys if key in self.root}


class SuspicionsDocument(Root[dict[str, tuple[Suspicion, ...]]]):
    """Step -> failures in its log although it ended with 0."""

    NAME: ClassVar[str] = "suspicions"
    root: dict[str, tuple[Suspicion, ...]] = {}


class PredictionsDocument(Root[dict[PartKey, dict[PredictionKey, tuple[float, ...]]]]):
    """Step or leg -> class scores and results."""

    NAME: ClassVar[str] = "predictions"
    root: dict[PartKey, dict[PredictionKey, tuple[float, ...]]] = {}


class AutologDocument(Root[dict[LegKey, MaskedTexts]]):
    """Leg -> AutoLog fields as printed."""

    NAME: ClassVar[str] = "autolog"
    root: dict[LegKey, MaskedTexts] = {}


class ReportsDocument(Root[dict[LegKey, AutologReport]]):
    """Leg -> its last AutoLog report."""

    NAME: ClassVar[str] = "reports"
    root: dict[LegKey, AutologReport] = {}


class EngineDocument(Root[dict[LegKey, MaskedTexts]]):
    """Leg -> the effective settings reported by the inference process."""

    NAME: ClassVar[str] = "engine"
    root: dict[LegKey, MaskedTexts] = {}


class ReportersDocument(Root[dict[LegKey, Masked]]):
    """Leg -> the AutoLog that wrote its report."""

    NAME: ClassVar[str] = "reporters"
    root: dict[LegKey, Masked] = {}


class ReporterDocument(Root[str]):
    """The AutoLog of the whole run, as stored until 2026-11-22."""

    NAME: ClassVar[str] = "reporter"


class LinesDocument(Root[dict[str, LogLines]]):
    """Step -> number of recognized lines of its training logs."""

    NAME: ClassVar[str] = "lines"
    root: dict[str, LogLines] = {}


class ProgressDocument(Root[dict[str, tuple[PrintedProgress, ...]]]):
    """Step -> the last printed progress of its ranks."""

    NAME: ClassVar[str] = "progress"
    root: dict[str, tuple[PrintedProgress, ...]] = {}


class RanksDocument(Root[dict[str, tuple[RankReport, ...]]]):
    """Step -> reports of its training processes."""

    NAME: ClassVar[str] = "ranks"
    root: dict[str, tuple[RankReport, ...]] = {}


class CutDocument(Root[dict[str, tuple[Masked, ...]]]):
    """Step -> the unread part of its files, as text."""

    NAME: ClassVar[str] = "cut"
    root: dict[str, tuple[Masked, ...]] = {}


class LateLogs(Record):
    """The logs of a lost member, fetched after the end of the run.

    Attributes:
        done: whether no sweep requests them again.
        tries: how often they were requested.
        samples: number of metric values that were stored.
    """

    done: bool
    tries: int = 1
    samples: int = 0
    message: Masked = ""


class LateLogsDocument(Root[dict[MemberKey, LateLogs]]):
    """Lost members of the run whose logs were fetched late, or are no longer available."""

    NAME: ClassVar[str] = "late_logs"
    root: dict[MemberKey, LateLogs] = {}


class NumbersDocument(Fields):
    """Cached metric values of an ended run (`numbers_of`).

    Attributes:
        rule: version of the rule that computed them.
        samples: number of samples that they were computed from.
        confirms: values of the run's confirm runs.
    """

    NAME: ClassVar[str] = "numbers"
    rule: int = 0
    samples: int = 0
    numbers: dict[MetricKey, float] = {}
    confirms: dict[MetricKey, ConfirmValues] = {}


class FoundDocument(Root[tuple[EvidenceKey, ...]]):
    """The evidence that the run produced; later runs must produce it, too."""

    NAME: ClassVar[str] = "found"
    root: tuple[EvidenceKey, ...] = ()


class JsonDocument(Root[Any]):
    """A section of the certificate, whose canonical form is hashed: its JSON value is stored unchanged."""

    def body(self) -> Any:
        """Return the JSON value to store."""
        return self.root


class EvidenceDocument(JsonDocument):
    """Expected evidence compared with the found evidence (`evidence_section`)."""

    NAME: ClassVar[str] = "evidence"


class GateDocument(JsonDocument):
    """Limits of the change-point detector (`gate_section`)."""

    NAME: ClassVar[str] = "gate"


class CertificateDocument(JsonDocument):
    """The certificate as the run wrote it."""

    NAME: ClassVar[str] = "certificate"


class AbDocument(JsonDocument):
    """The result of an A/B comparison, stored with its first run (`tipcflow ab --json`)."""

    NAME: ClassVar[str] = "ab"


class JudgementDocument(Fields):
    """The judge's result, until the verdict stores it as the run's status; `parts` are those of its reason."""

    NAME: ClassVar[str] = "judgement"
    status: Status
    reason: Masked = ""
    parts: tuple[Masked, ...] = ()


class LeftoversDocument(Root[tuple[Masked, ...]]):
    """What was left of the run on its nodes, as text."""

    NAME: ClassVar[str] = "leftovers"
    root: tuple[Masked, ...] = ()


class ConfirmationDocument(Fields):
    """The judge's request for a confirm run.

    Attributes:
        run: id of the confirm run.
        keys: suspected steps and legs.
        until: deadline of the confirmation, by the database's clock.
        refused: why the confirmation was cancelled, '' if it was not.
        dag_run_id, run_after: id and time (ISO 8601) of its run of the DAG `confirm`; '' for a run of the CLI.
        mode: mode of the confirm run.
        alone: whether `keys` are evaluations that are repeated without a training.
        earlier: earlier confirm runs of the same run, oldest first; all of them showed the change.
    """

    NAME: ClassVar[str] = "confirmation"
    run: str
    keys: tuple[PartKey, ...]
    until: float
    refused: Masked = ""
    dag_run_id: str = ""
    run_after: str = ""
    mode: str = ""
    alone: bool = False
    earlier: tuple[str, ...] = ()

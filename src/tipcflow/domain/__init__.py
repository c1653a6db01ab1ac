"""Domain types: frozen types shared by all packages. Imports no other package of tipcflow.

Every type that leaves a process (as JSON in the database, in a job folder, in a certificate) carries a
`schema_version` and is only ever extended by adding fields with defaults.

Public: `__all__`, `base`, `build`, `characters`, `errors`, `generated`, `keys`, `masking`, `node`, `plan`,
`priority`, `run_documents`, `triggers`.
"""

from tipcflow.domain.base import Frozen
from tipcflow.domain.check import (
    AutologReport,
    CheckFamily,
    CheckResult,
    Facts,
    LogLines,
    PrintedProgress,
    RankReport,
    family_of,
    is_accuracy,
)
from tipcflow.domain.errors import ConfigError, DatabaseLostError, InfraError, TipcflowError
from tipcflow.domain.expectation import Declared, Evidence, Expectation, Source
from tipcflow.domain.keys import (
    AttemptKey,
    CurveKey,
    EvidenceKey,
    GoldenKey,
    LegKey,
    LossKey,
    MemberKey,
    MetricKey,
    PartKey,
    WaitKey,
    plain_metric,
    without_repeat,
)
from tipcflow.domain.node import (
    Cluster,
    Container,
    DockerExec,
    ExecTarget,
    Framework,
    KubernetesExec,
    Launch,
    Node,
    NodeFacts,
    SlurmSource,
    SlurmStep,
    SshTarget,
)
from tipcflow.domain.numbers.history import (
    PastRun,
    last_attempts,
    losses_of,
    medians_of,
    numbers_of,
)
from tipcflow.domain.numbers.measurement import Measurement, Phase
from tipcflow.domain.numbers.series import Series
from tipcflow.domain.plan import (
    Command,
    Compat,
    Compression,
    Leg,
    Plan,
    Quirk,
    Step,
    StepKind,
    Substitution,
    Variant,
)
from tipcflow.domain.priority import Priority, priority_of
from tipcflow.domain.run.attempt import Attempt
from tipcflow.domain.run.exit_record import (
    EndReason,
    ExitRecord,
    ModelContent,
    Observed,
    ObservedRank,
    OutputFile,
    ProcessReport,
    RankEnd,
    StoppedBy,
    UnmetNeed,
)
from tipcflow.domain.run.failure import Failure, FailureClass
from tipcflow.domain.run.job import JobCommand, JobSpec
from tipcflow.domain.run.member import MemberState
from tipcflow.domain.run.run import Run, dag_id_of, new_run_id, run_id_of
from tipcflow.domain.status import Status, exit_code, run_status

__all__ = [
    "Attempt",
    "AttemptKey",
    "AutologReport",
    "CheckFamily",
    "CheckResult",
    "Cluster",
    "Command",
    "Compat",
    "Compression",
    "ConfigError",
    "Container",
    "CurveKey",
    "DatabaseLostError",
    "Declared",
    "DockerExec",
    "EndReason",
    "Evidence",
    "EvidenceKey",
    "ExecTarget",
    "ExitRecord",
    "Expectation",
    "Facts",
    "Failure",
    "FailureClass",
    "Framework",
    "Frozen",
    "GoldenKey",
    "InfraError",
    "JobCommand",
    "JobSpec",
    "KubernetesExec",
    "Launch",
    "Leg",
    "LegKey",
    "LogLines",
    "LossKey",
    "Measurement",
    "MemberKey",
    "MemberState",
    "MetricKey",
    "ModelContent",
    "Node",
    "NodeFacts",
    "Observed",
    "ObservedRank",
    "OutputFile",
    "PartKey",
    "PastRun",
    "Phase",
    "Plan",
    "PrintedProgress",
    "Priority",
    "ProcessReport",
    "Quirk",
    "RankEnd",
    "RankReport",
    "Run",
    "Series",
    "SlurmSource",
    "SlurmStep",
    "Source",
    "SshTarget",
    "Status",
    "Step",
    "StepKind",
    "StoppedBy",
    "Substitution",
    "TipcflowError",
    "UnmetNeed",
    "Variant",
    "WaitKey",
    "dag_id_of",
    "exit_code",
    "family_of",
    "is_accuracy",
    "last_attempts",
    "losses_of",
    "medians_of",
    "new_run_id",
    "numbers_of",
    "plain_metric",
    "priority_of",
    "run_id_of",
    "run_status",
    "without_repeat",
]

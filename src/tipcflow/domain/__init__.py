"""Domain types: frozen types shared by all packages. Imports no other package of tipcflow.

Every type that leaves a process (as JSON in the database, in a job folder, in a certificate) carries a
`schema_version` and is only ever extended by adding fields with defaults.
"""

from tipcflow.domain.base import Frozen
from tipcflow.domain.check import AutologReport, CheckResult, Facts, LogLines, RankReport
from tipcflow.domain.errors import ConfigError, InfraError, TipcflowError
from tipcflow.domain.expectation import Declared, Evidence, Expectation, Source
from tipcflow.domain.node import Cluster, Container, Launch, Node, NodeFacts, SshTarget
from tipcflow.domain.numbers.history import (
    PastRun,
    last_attempts,
    losses_of,
    medians_of,
    numbers_of,
    plain_metric,
    without_repeat,
)
from tipcflow.domain.numbers.measurement import Measurement, Phase
from tipcflow.domain.numbers.series import Series
from tipcflow.domain.plan import (
    Command,
    Compat,
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
from tipcflow.domain.run.exit_record import EndReason, ExitRecord, OutputFile, RankEnd, StoppedBy
from tipcflow.domain.run.failure import Failure, FailureClass
from tipcflow.domain.run.job import JobCommand, JobSpec
from tipcflow.domain.run.member import MemberState
from tipcflow.domain.run.run import Run, dag_id_of, new_run_id, run_id_of
from tipcflow.domain.status import Status, exit_code, run_status

__all__ = [
    "Attempt",
    "AutologReport",
    "CheckResult",
    "Cluster",
    "Command",
    "Compat",
    "ConfigError",
    "Container",
    "Declared",
    "EndReason",
    "Evidence",
    "ExitRecord",
    "Expectation",
    "Facts",
    "Failure",
    "FailureClass",
    "Frozen",
    "InfraError",
    "JobCommand",
    "JobSpec",
    "Launch",
    "Leg",
    "LogLines",
    "Measurement",
    "MemberState",
    "Node",
    "NodeFacts",
    "OutputFile",
    "PastRun",
    "Phase",
    "Plan",
    "Priority",
    "Quirk",
    "RankEnd",
    "RankReport",
    "Run",
    "Series",
    "Source",
    "SshTarget",
    "Status",
    "Step",
    "StepKind",
    "StoppedBy",
    "Substitution",
    "TipcflowError",
    "Variant",
    "dag_id_of",
    "exit_code",
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

"""The request of a user or a scheduler: one run of one chain."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from tipcflow.config.policy import Policy
from tipcflow.config.suite import Suite
from tipcflow.domain import Cluster, Compat, PartKey
from tipcflow.domain.run_documents import Root


@dataclass(frozen=True)
class RunRequest:
    """The request for one run.

    Attributes:
        params: the params file as given (a path, or relative to the suite's root).
        suite, cluster: names, or paths of YAML files.
        suite_ref: git ref of the suite, None for its working tree.
        base: target branch of a change, or a commit of it; None for a run that tests no change.
        framework: requirement that the nodes must satisfy, '' for any; a release `NAME==VERSION` that a node does
            not have is installed for the run.
        framework_wheel: address, path or name of a wheel that is installed for the run; '' for none.
        framework_sha256: its hash.
        drop: globs of legs (`step/leg`) that the run leaves out.
        wait_s: maximum wait for free slots; None: the policy's value.
        only_inside: the params file must be one of the suite's; otherwise any path is valid.
        confirms: the run that this run confirms, '' for none.
        only: steps and legs to execute, with those that they need; empty for all. Those that a run does not have
            are ignored; a run that has none of them executes all, unless it confirms another run.
        evaluates: whether only evaluations run, on what the confirmed run has trained.
        ends_at: deadline of a confirm run, by the database's clock; 0 for none.
        keep: keep the run's working folder on the nodes even if it passes.
        nodes_of: an earlier run on whose nodes this run must be; '' for any nodes of the cluster.
        lease_to: the run that follows on the same nodes and gets the leases, in Airflow; '' for none.
    """

    params: str
    suite: str
    mode: str
    cluster: str
    config_dir: Path
    suite_ref: str | None = None
    base: str | None = None
    framework: str = ""
    framework_wheel: str = ""
    framework_sha256: str = ""
    seed: int | None = None
    repeats: int = 1
    diagnose: bool = False
    drop: tuple[str, ...] = ()
    compat: Compat = Compat.SPEC
    wait_s: float | None = None
    policy: str = "pr"
    trigger: str = "cli"
    owner: str = ""
    keep: bool = False
    only_inside: bool = False
    confirms: str = ""
    only: tuple[PartKey, ...] = ()
    evaluates: bool = False
    ends_at: float = 0.0
    nodes_of: str = ""
    lease_to: str = ""
    command: tuple[str, ...] = field(default=())

    def waits_s(self, policy: Policy) -> float:
        """Return how long the run may wait for free slots, seconds."""
        return policy.lease_wait_s if self.wait_s is None else self.wait_s


class RequestDocument(Root[RunRequest]):
    """The request as the run was created with."""

    NAME: ClassVar[str] = "request"


@dataclass(frozen=True)
class Inputs:
    """A resolved request: all files are read and checked, nothing is started."""

    suite: Suite
    cluster: Cluster
    chain: str
    model: str

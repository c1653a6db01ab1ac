"""What a person or a scheduler asks for: one run of one chain."""

from dataclasses import dataclass, field
from pathlib import Path

from tipcflow.config.policy import Policy
from tipcflow.config.suite import Suite
from tipcflow.domain import Cluster, Compat


@dataclass(frozen=True)
class RunRequest:
    """One run.

    Attributes:
        params: the params file as given (a path, or relative to the suite's root).
        suite, cluster: names, or paths of YAML files.
        suite_ref: git ref of the suite, None for its folder as it is.
        base: the branch that a change is for, or a commit of it; None for what is no change.
        framework: requirement that the nodes must satisfy, '' for any.
        wait_s: how long to wait for free slots; None for what the policy says.
        only_inside: the params file must be one of the suite's; else a path of any file will do.
        confirms: the run that this one confirms, '' for none; `only` are the steps (or step/leg) in doubt then.
        evaluates: whether these are evaluations that are done alone, on what the confirmed run has trained.
        ends_at: when its answer comes too late, by the database's clock; 0 for never.
        keep: keep the run's working folder on the nodes also when it passed.
    """

    params: str
    suite: str
    mode: str
    cluster: str
    config_dir: Path
    suite_ref: str | None = None
    base: str | None = None
    framework: str = ""
    seed: int | None = None
    repeats: int = 1
    diagnose: bool = False
    compat: Compat = Compat.SPEC
    wait_s: float | None = None
    policy: str = "pr"
    trigger: str = "cli"
    owner: str = ""
    keep: bool = False
    only_inside: bool = False
    confirms: str = ""
    only: tuple[str, ...] = ()
    evaluates: bool = False
    ends_at: float = 0.0
    command: tuple[str, ...] = field(default=())

    def left_s(self, budget_s: float, now: float) -> float:
        """What is left of a budget that begins now, seconds. A confirm run has its own end instead: `ends_at`.

        Args:
            now: the time by the database's clock.
        """
        return max(1.0, self.ends_at - now) if self.ends_at else budget_s

    def waits_s(self, policy: Policy) -> float:
        """How long the run may wait for free slots, seconds."""
        return policy.lease_wait_s if self.wait_s is None else self.wait_s


@dataclass(frozen=True)
class Inputs:
    """A request, resolved: everything is read and checked, nothing is started."""

    suite: Suite
    cluster: Cluster
    chain: str
    model: str


def chain_name(suite: str, params_file: str) -> str:
    """`<suite>/<model folder>/<file stem>` of a params file: the chain's name wherever it is shown."""
    path = Path(params_file)
    parent = path.parent.name or "params"
    return f"{suite}/{parent}/{path.stem}"

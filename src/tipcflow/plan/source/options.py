"""What a plan may be asked for beyond file, mode and cluster."""

from pydantic import ConfigDict, Field

from tipcflow.domain import Frozen, Launch
from tipcflow.plan.source.files import FileView, NoFiles


class PlanOptions(Frozen):
    """Settings of one run.

    Attributes:
        seed: what the training is seeded with, None to leave it to the suite.
        seed_argument: text appended to training commands when there is a seed, with `{seed}` in it
            (`--seed={seed}`); '' when the suite takes none.
        deterministic: whether a seeded training is deterministic on the cluster's devices.
        training_env, training_arguments: variables and appended text that make it so.
        repeats: how often every variant is trained, evaluated, exported and inferred.
        diagnose: ask the framework for a verbose training.
        launch: how distributed trainings are started; `compat bash` does as the script does, whatever stands here.
        start_port: first port of a multi-node training; ranks take it and the ones after it.
        cpu_flags: node name -> CPU flags; None when not known, then no leg is refused for want of one.
        step_deadline_s: seconds after which a step is ended.
        files: the suite's checkout.
        prepare: the suite's preparation script, relative to its root; '' for none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    seed: int | None = None
    seed_argument: str = ""
    deterministic: bool = False
    training_env: dict[str, str] = {}
    training_arguments: str = ""
    repeats: int = Field(default=1, ge=1)
    diagnose: bool = False
    launch: Launch = Launch.IPS
    start_port: int = Field(default=6070, ge=1, le=65535)
    cpu_flags: dict[str, frozenset[str]] | None = None
    step_deadline_s: float = Field(default=900.0, gt=0)
    files: FileView = NoFiles()
    prepare: str = "test_tipc/prepare.sh"

"""Options of a plan other than file, mode and cluster."""

from pydantic import ConfigDict, Field

from tipcflow.config.needs import Needs
from tipcflow.domain import Frozen, Launch
from tipcflow.domain.build import FrameworkBuild
from tipcflow.plan.source.files import FileView, NoFiles


class PlanOptions(Frozen):
    """Settings of one run.

    Attributes:
        seed: the training's seed, None for the suite's default.
        seed_argument: text with `{seed}` appended to training commands if a seed is set (`--seed={seed}`);
            '' if the suite takes no seed.
        deterministic: whether a seeded training is deterministic on the cluster's devices.
        training_env, training_arguments: variables and appended text that make a training deterministic.
        repeats: number of times every variant is trained, evaluated, exported and inferred.
        diagnose: enable verbose framework output of trainings.
        launch: launcher of distributed trainings; ignored by `compat bash`, which uses the script's launcher.
        start_port: first port of a multi-node training; ranks use consecutive ports from it.
        cpu_flags: node name -> CPU flags; None if unknown, and then no leg is excluded because of CPU flags.
        mixed_on_cpu: whether the framework trains with mixed precision on CPUs; otherwise such variants are
            `not_run` on nodes without a GPU.
        step_deadline_s: time limit of a step in seconds.
        files: the suite's checkout.
        prepare: the suite's preparation script, relative to the suite's root; '' for none.
        needs: what the suite file needs on the nodes, in this mode and on these devices.
        own_environment: whether the run has a Python environment of its own.
        build: framework build that this environment gets; None for none.
        interpreters: node name -> interpreter of the node's environment, which makes that of the run.
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
    mixed_on_cpu: bool = True
    step_deadline_s: float = Field(default=900.0, gt=0)
    files: FileView = NoFiles()
    prepare: str = "test_tipc/prepare.sh"
    needs: Needs = Needs()
    own_environment: bool = False
    build: FrameworkBuild | None = None
    interpreters: dict[str, str] = {}

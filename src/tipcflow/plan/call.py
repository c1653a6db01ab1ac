"""One command of a script's run, with everything that is known about it."""

from dataclasses import dataclass, field

from tipcflow.domain import StepKind
from tipcflow.plan.groups import Group
from tipcflow.plan.trainers import Trainer


@dataclass(frozen=True)
class Point:
    """Where in the loops a call stands: device group x precision x trainer. `folder` is its save folder."""

    group: Group
    autocast: str
    trainer: Trainer
    folder: str


@dataclass(frozen=True)
class Call:
    """One command as the script evaluates it.

    Attributes:
        kind: what it does; inference is told apart by device.
        text: the command with its redirection.
        log: the redirection's target, '' when there is none.
        cuda: CUDA_VISIBLE_DEVICES when it runs, None when unset.
        point: where it stands in the loops, None without training.
        leg: axis -> word, for inference; `device` is the device word.
        count: which of the listed models, without training.
        bare: the script runs it as it stands, without evaluating a text.
        expects: files that it leaves behind when it went well, as patterns.
    """

    kind: StepKind
    text: str
    log: str = ""
    cwd: str = "."
    cuda: str | None = None
    point: Point | None = None
    leg: dict[str, str] = field(default_factory=dict)
    count: int = 0
    expects: tuple[str, ...] = ()
    bare: bool = False

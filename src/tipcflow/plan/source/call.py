"""One command of a script's run, with everything that is known about it."""

import re
from dataclasses import dataclass, field

from tipcflow.domain import Command, StepKind
from tipcflow.plan.source.groups import Group
from tipcflow.plan.source.trainers import Trainer

_UNSAFE = re.compile(r"[^A-Za-z0-9_.,-]+")


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
        label: the name of the variant it belongs to, where it is not that of its point; `setup` is for all.
        before: which step it is an extra before, '' when it is none.
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
    label: str = ""
    before: str = ""

    @property
    def variant(self) -> str:
        """The first part of the id of the step that it belongs to."""
        if self.label:
            return self.label
        if self.point is None:
            return "infer" if self.count == 0 else f"infer_{self.count}"
        return variant_id(self.point.trainer.name, self.point.group, self.point.autocast)

    def as_command(self) -> Command:
        """The command alone, as records of real runs have it."""
        env = {} if self.cuda is None else {"CUDA_VISIBLE_DEVICES": self.cuda}
        return Command(text=self.text, cwd=self.cwd, env=env, log=self.log)


def variant_id(trainer: str, group: Group, autocast: str) -> str:
    """For instance `norm_train_gpus_0,1_autocast_amp_nodes_2`; safe as a folder name."""
    return _UNSAFE.sub("_", f"{trainer}_gpus_{group.gpus}_autocast_{autocast}_nodes_{group.nodes}")

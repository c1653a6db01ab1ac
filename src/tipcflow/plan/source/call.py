"""One command of a script's run, with its attributes."""

import re
from dataclasses import dataclass, field

from tipcflow.domain import Command, StepKind
from tipcflow.plan.source.groups import Group
from tipcflow.plan.source.trainers import Trainer

_UNSAFE = re.compile(r"[^A-Za-z0-9_.,-]+")


@dataclass(frozen=True)
class Point:
    """Position of a call in the loops: device group x precision x trainer. `folder` is its save folder."""

    group: Group
    autocast: str
    trainer: Trainer
    folder: str


@dataclass(frozen=True)
class Call:
    """One command as the script evaluates it.

    Attributes:
        kind: kind of step; inference has one kind per device.
        text: the command with its redirection.
        log: the redirection's target, '' if none.
        cuda: CUDA_VISIBLE_DEVICES during the call, None if unset.
        point: position in the loops, None without training.
        leg: axis -> word, for inference; `device` is the device word.
        count: index of the listed model, in modes without training.
        label: the variant's name, where it differs from that of the point; `setup` is shared by all variants.
        before: the step that this extra command precedes, '' if it is not an extra.
        bare: the script runs it directly, without `eval`.
        expects: files that it creates on success, as patterns.
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
        """Return the first part of the id of the call's step."""
        if self.label:
            return self.label
        if self.point is None:
            return "infer" if self.count == 0 else f"infer_{self.count}"
        return variant_id(self.point.trainer.name, self.point.group, self.point.autocast)

    def as_command(self) -> Command:
        """Return the command in the form of recorded runs."""
        env = {} if self.cuda is None else {"CUDA_VISIBLE_DEVICES": self.cuda}
        return Command(text=self.text, cwd=self.cwd, env=env, log=self.log)


def variant_id(trainer: str, group: Group, autocast: str) -> str:
    """Return the variant's id, for example `norm_train_gpus_0,1_autocast_amp_nodes_2`; safe as a folder name."""
    return _UNSAFE.sub("_", f"{trainer}_gpus_{group.gpus}_autocast_{autocast}_nodes_{group.nodes}")

"""Declared length of a training, read from its command's arguments."""

import re

from tipcflow.domain import Step, StepKind
from tipcflow.params.modes import BENCHMARK
from tipcflow.plan.source.reader import Reader

# The declared length does not apply to a training that another limit can end.
_LIMITED = re.compile(r"(?:^|[\s;&])timeout\s|max_iters=\d")


def with_length(step: Step, reader: Reader) -> Step:
    """Return a training step with the epochs or iterations that its commands pass; other steps unchanged.

    In benchmark mode a training ends after enough measurements, independent of its arguments.
    """
    key = reader.key("epochs")
    if step.kind is not StepKind.TRAIN or reader.mode == BENCHMARK or not key or key == "null":
        return step
    lengths = {_passed(command.text, key) for command in step.commands.values()}
    length = lengths.pop() if len(lengths) == 1 else 0
    if not length:
        return step
    name = "epochs" if "epoch" in key.lower() else "iterations" if "iter" in key.lower() else ""
    return step.model_copy(update={name: length}) if name else step


def _passed(text: str, key: str) -> int:
    """Return the last number that a command passes for a key; 0 if none."""
    values = re.findall(rf"(?<![\w.-]){re.escape(key)}[= ](\d{{1,9}})(?![\w.])", text)
    return int(values[-1]) if values and not _LIMITED.search(text) else 0

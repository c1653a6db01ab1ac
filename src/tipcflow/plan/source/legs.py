"""Inference combinations: the Cartesian product of a dialect's axes, filtered by its skip rules."""

from collections.abc import Iterator
from itertools import product

from tipcflow.domain import StepKind
from tipcflow.params.specs import DEVICES, Device, SequenceSpec
from tipcflow.plan.source.reader import Reader


def devices(reader: Reader) -> Iterator[tuple[str, Device | None]]:
    """Yield the device words in the file's order, each with its device; None for an unknown word."""
    for word in reader.items("device"):
        yield word, DEVICES.get(word)


def combinations(reader: Reader, device: Device, quant: str, *, keep_defects: bool) -> Iterator[dict[str, str]]:
    """Yield axis -> word, outermost axis first, in the dialect's loop order.

    Args:
        reader: the reader whose slots contain the words.
        device: the device of the product.
        quant: the word that declares whether the model is quantized (`True`, `False`, or any text).
        keep_defects: whether rules that are defects of the script apply (bash) or not (spec).
    """
    dialect = reader.dialect
    axes = (dialect.cpu if device == "cpu" else dialect.gpu).axes
    rules = [rule for rule in dialect.skip if rule.device == device and (keep_defects or not rule.defect)]
    for words in product(*(reader.items(axis) for axis in axes)):
        combination = dict(zip(axes, words, strict=True))
        named = {**combination, "quant": quant}
        if not any(rule.leaves_out(named) for rule in rules):
            yield combination


def sequence_leg(spec: SequenceSpec, words: tuple[str, ...]) -> tuple[StepKind, dict[str, str]]:
    """Return the kind of step and the words, including `device`, of one inference of a sequence.

    An unknown device word counts as CPU; the command contains the word.
    """
    leg = dict(zip(spec.loops, words, strict=True))
    word = leg.pop("device", spec.device)
    kind = StepKind.INFER_GPU if DEVICES.get(word) == "gpu" else StepKind.INFER_CPU
    return kind, {"device": word, **leg}

"""Inference combinations: the cartesian product of a dialect's axes, less what its skip rules leave out."""

from collections.abc import Iterator
from itertools import product

from tipcflow.domain import StepKind
from tipcflow.params.specs import DEVICES, Device, SequenceSpec
from tipcflow.plan.source.reader import Reader


def devices(reader: Reader) -> Iterator[tuple[str, Device | None]]:
    """The device words in the file's order, each with its device; None for a word no script knows."""
    for word in reader.items("device"):
        yield word, DEVICES.get(word)


def combinations(reader: Reader, device: Device, quant: str, *, keep_defects: bool) -> Iterator[dict[str, str]]:
    """Axis -> word, outermost axis first, as the dialect loops.

    Args:
        reader: whose slots give the words.
        device: which product.
        quant: the word that says whether the model is quantised (`True`, `False`, or anything).
        keep_defects: whether rules that are defects of the script count too (bash) or not (spec).
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
    """The kind of step and the words (`device` among them) of one inference of a sequence.

    A word of a device that is not known counts as a CPU's: its command says what it is.
    """
    leg = dict(zip(spec.loops, words, strict=True))
    word = leg.pop("device", spec.device)
    kind = StepKind.INFER_GPU if DEVICES.get(word) == "gpu" else StepKind.INFER_CPU
    return kind, {"device": word, **leg}

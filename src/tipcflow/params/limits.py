"""Bounds of a params file's lists: every list is a loop of the script, and nested loops multiply.

The counts are computed without running a loop, so that a file of any size is refused at once.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from tipcflow.domain import ConfigError
from tipcflow.params.dialect import Dialect
from tipcflow.params.file import ParamsFile

# Far above the files of all known suites (10 alternatives, 12 trainings, 500 legs).
MAX_ALTERNATIVES, MAX_TRAININGS, MAX_LEGS = 256, 1024, 10_000
# Ids or addresses of one entry of gpu_list.
MAX_DEVICES = 1024


@dataclass(frozen=True)
class Excess:
    """A list, or a product of lists, that exceeds its bound; `line` is that of the longest list."""

    line: int
    key: str
    message: str
    found: str
    expected: str


def excess(params: ParamsFile, dialect: Dialect) -> Excess | None:
    """Return the first bound that a file's lists exceed; None for an ordinary file."""
    counts = {name: slot.full.count("|") + 1 for name, slot in params.slots.items() if slot.present}
    for name, count in counts.items():
        if count > MAX_ALTERNATIVES and dialect.kind(name) != "key":
            slot = params[name]
            limits = f"{count} alternatives", f"at most {MAX_ALTERNATIVES}"
            return Excess(slot.line, slot.key.strip()[:80], "the list is too long", *limits)
    loops = ("gpu_list", "autocast", "trainers")
    trainings = _product(counts, loops)
    if trainings > MAX_TRAININGS:
        return _multiplied(params, counts, loops, f"{trainings} trainings", MAX_TRAININGS)
    models = max(trainings, counts.get("infer_model", 1), counts.get("infer_export", 1))
    inferences = [dialect.cpu.axes, dialect.gpu.axes, *(spec.loops for spec in dialect.sequence if spec.infer)]
    axes = max(inferences, key=lambda names: _product(counts, names))
    legs = models * counts.get("device", 1) * _product(counts, [axis for axis in axes if axis != "device"])
    if legs > MAX_LEGS:
        every = (*loops, "infer_model", "infer_export", "device", *axes)
        return _multiplied(params, counts, every, f"{legs} inference legs", MAX_LEGS)
    return None


def check_lists(params: ParamsFile, dialect: Dialect) -> None:
    """Raise ConfigError if a list, or the product of the file's lists, exceeds its bound."""
    problem = excess(params, dialect)
    if problem:
        raise ConfigError(
            problem.message,
            file=params.file,
            line=problem.line,
            key=problem.key,
            found=problem.found,
            expected=problem.expected,
        )


def _product(counts: dict[str, int], names: Iterable[str]) -> int:
    return prod(counts.get(name, 1) for name in names)


def _multiplied(params: ParamsFile, counts: dict[str, int], names: Iterable[str], found: str, most: int) -> Excess:
    longest = params[max((name for name in names if name in counts), key=lambda name: counts[name])]
    message = "the file's lists multiply to too many combinations"
    return Excess(longest.line, longest.key.strip()[:80], message, found, f"at most {most}")

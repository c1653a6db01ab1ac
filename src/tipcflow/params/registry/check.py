"""Errors in a dialect that types cannot detect: unknown slots, axes, placeholders and quirks."""

import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

from tipcflow.config.own_dialects import Source
from tipcflow.config.yaml_text.shipped import own_yaml
from tipcflow.params.dialect import Dialect
from tipcflow.params.layout import load_layout

_PLACE = re.compile(r"\{[!?]?(?P<name>\w+)(?P<set>=(?P<value>\w*))?@?\}")
_BRACES = re.compile(r"\{[^{}]*\}")
# Variables that the planner sets in addition to those of the dialect and the slots.
_VARIABLES = frozenset(
    {
        *("mode", "launch", "root", "model", "model_file", "LP", "S", "bare", "gpus", "ips", "nodes", "autocast"),
        *("trainer", "script", "static", "weights", "export_weights", "model_path", "model_dir_path", "data"),
        *("device_word", "count", "infer_item", "save_dir", "amp", "model_args", "last_args"),
    }
)
_SECTION = frozenset({"batch", "fp", "epoch", "models", "workers", "profiler", "flags", "iters", "_"})
# Keys whose texts are templates; the texts of `benchmark` and `last_line` have placeholders of their own.
_TEMPLATES = (
    *("spec_output", "output", "save", "suffix", "launch", "amp", "amp_vars", "by_mode", "bash_vars"),
    *("infer_vars", "train", "weights", "weights_of", "weights_fallback", "eval", "export", "model_dir"),
    *("exported", "model_dir_null", "data", "cpu", "gpu", "whole_infer", "extras", "sequence"),
)


def check_dialect(dialect: Dialect, source: Source) -> None:
    """Raise ConfigError for the first name in a dialect that refers to nothing.

    A dialect of another script of a suite inherits parts that this script never uses: only its own keys count.

    Raises:
        ConfigError: with file, line and key; the line is 1 for an inherited text.
    """
    for path, name, valid, what in _names(dialect):
        if name not in valid and not _inherited(dialect, source, path[0]):
            raise source.error(f"there is no such {what}", *path, found=name, expected=_listed(valid))
    _check_templates(dialect, source)


def _inherited(dialect: Dialect, source: Source, key: str | int) -> bool:
    return bool(dialect.family) and key not in source.data


def _names(dialect: Dialect) -> Iterator[tuple[tuple[str | int, ...], str, frozenset[str], str]]:
    """Yield path, name, the known names and the kind of every reference in a dialect."""
    slots = _slots(dialect)
    for device, spec in (("cpu", dialect.cpu), ("gpu", dialect.gpu)):
        yield from (((device, "axes", place), axis, slots, "slot") for place, axis in enumerate(spec.axes))
    for place, rule in enumerate(dialect.skip):
        axes = frozenset((dialect.cpu if rule.device == "cpu" else dialect.gpu).axes) | {"quant"}
        yield from ((("skip", place, "when", axis), axis, axes, f"axis on {rule.device}") for axis in rule.when)
    for name, trainer in dialect.trainers.items():
        yield ("trainers", name, "train"), trainer.train, slots, "slot"
        yield ("trainers", name, "export"), trainer.export, slots, "slot"
    for key in ("kinds", "expect", "defaults"):
        yield from (((key, slot), slot, slots, "slot") for slot in getattr(dialect, key))
    variables = frozenset({*dialect.by_mode, *dialect.bash_vars})
    yield from ((("added", place), name, variables, "variable") for place, name in enumerate(dialect.added))
    yield from ((("quirks", place), quirk, quirk_ids(), "quirk") for place, quirk in enumerate(dialect.quirks))
    for word, slot in dialect.whole_infer.by_word.items():
        yield ("whole_infer", "by_word", word), slot, slots, "slot"
    for place, extra in enumerate(dialect.extras):
        yield from ((("extras", place, "slot_key", slot), slot, slots, "slot") for slot in extra.slot_key)
        yield from ((("extras", place, "unless"), slot, slots, "slot") for slot in extra.unless)
    yield from _sequence_names(dialect, slots)
    if dialect.benchmark:
        for place, name in enumerate(dialect.benchmark.section):
            yield ("benchmark", "section", place), name, _SECTION, "line of the section"


def _sequence_names(
    dialect: Dialect, slots: frozenset[str]
) -> Iterator[tuple[tuple[str | int, ...], str, frozenset[str], str]]:
    for place, step in enumerate(dialect.sequence):
        for key in ("loops", "unless", "needs"):
            yield from ((("sequence", place, key), slot, slots, "slot") for slot in getattr(step, key))
    if dialect.sequence_loop:
        yield ("sequence_loop", "slot"), dialect.sequence_loop.slot, slots, "slot"
        for word, slot in dialect.sequence_loop.scripts.items():
            yield ("sequence_loop", "scripts", word), slot, slots, "slot"


def _slots(dialect: Dialect) -> frozenset[str]:
    others = [load_layout(spec.layout).slots for spec in dialect.modes.values()]
    return frozenset(dialect.line_map().slots).union(*others)


def _check_templates(dialect: Dialect, source: Source) -> None:
    slots = _slots(dialect)
    infer = {*dialect.infer_vars, *dialect.cpu.vars, *dialect.gpu.vars}
    own = {*dialect.by_mode, *dialect.bash_vars, *dialect.amp_vars, *infer}
    valid = frozenset({*_VARIABLES, *own, *slots, *dialect.cpu.axes, *dialect.gpu.axes})
    data = dialect.model_dump(mode="json")
    for key in _TEMPLATES:
        if _inherited(dialect, source, key):
            continue
        for path, text in _texts(data.get(key), (key,)):
            for place in _BRACES.findall(text):
                _check_place(place, path, source, valid, slots)


def _check_place(
    text: str, path: tuple[str | int, ...], source: Source, valid: frozenset[str], slots: frozenset[str]
) -> None:
    place = _PLACE.fullmatch(text)
    if place is None:
        expected = "{name}, {slot=}, {slot=name}, {!slot=name}, {?slot=name} or {slot@}"
        raise source.error("not a placeholder", *path, found=text, expected=expected)
    needs_key = place["set"] is not None or text.endswith("@}")
    names = slots if needs_key else valid
    if place["name"] not in names:
        what = "slot" if needs_key else "variable or slot"
        raise source.error(f"there is no such {what}", *path, found=text, expected=_listed(names))
    if place["value"] and place["value"] not in valid:
        raise source.error("there is no such variable or slot", *path, found=text, expected=_listed(valid))


def _texts(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, below in value.items():
            if key != "when":
                yield from _texts(below, (*path, key))
    elif isinstance(value, list):
        for place, below in enumerate(value):
            yield from _texts(below, (*path, place))


def _listed(names: frozenset[str]) -> str:
    return "one of " + ", ".join(sorted(names))


@cache
def quirk_ids() -> frozenset[str]:
    """Return the ids of all quirks."""
    text = (resources.files("tipcflow.plan") / "quirks.yaml").read_text(encoding="utf-8")
    return frozenset(own_yaml(text))

"""Quirks of benchmark scripts: how they interpret the section with batch sizes and precisions."""

from collections.abc import Iterator

from tipcflow.params.sections import BENCHMARK, BenchmarkSection, find_section
from tipcflow.params.values import is_null
from tipcflow.plan.quirks.match import QuirkMatch
from tipcflow.plan.quirks.values import find_texts
from tipcflow.plan.source.groups import Group
from tipcflow.plan.source.reader import Reader

# Name in a dialect's section -> field of `BenchmarkSection`.
_FIELDS = {"epoch": "epochs", "_": ""}


def find_benchmark(
    reader: Reader, section: BenchmarkSection, *, selected: bool, fps: list[str], groups: list[Group], count: int
) -> Iterator[QuirkMatch]:
    """Yield every quirk of a benchmark of this file.

    Args:
        selected: whether a word selects one case.
        fps, groups: precisions and devices of all cases.
        count: number of cases.
    """
    spec = reader.dialect.benchmark
    if spec is None:
        return
    yield QuirkMatch("benchmark-analysis", section.line)
    python = reader.value("python")
    if python != "python":
        yield QuirkMatch("benchmark-python", reader.line("python"), {"python": python})
    if any(group.form == "single" for group in groups):
        yield QuirkMatch("benchmark-profiling", section.line, {"options": section.profiler or "without options"})
    if reader.dialect.has("time-limit"):
        yield QuirkMatch("time-limit", reader.line("trainers"))
    yield from find_texts(reader)
    yield from _lines(reader, section)
    yield from _lost(reader)
    yield from _epochs(reader, section, groups, selected)
    unknown = [fp for fp in fps if fp in spec.precision_word]
    if unknown and not selected:
        yield QuirkMatch(
            "benchmark-precision", section.line, {"fp": unknown[0], "word": spec.precision_word[unknown[0]]}
        )
    if count > 1 and any(addition.model in reader.value("model") for addition in spec.model_append):
        yield QuirkMatch("benchmark-appends", reader.line("norm_train"))
    if spec.loses_model and count > 1:
        yield QuirkMatch("benchmark-names", section.line)
    for group in groups:
        if group.nodes > 1:
            yield QuirkMatch("benchmark-nodes", section.line, {"device": group.text, "nodes": group.nodes})


def _lines(reader: Reader, section: BenchmarkSection) -> Iterator[QuirkMatch]:
    """Yield quirks of lines: the script replaces them by physical number and reads the section by position."""
    spec, lines = reader.dialect.benchmark, reader.params.lines
    shifted = next((line for line in lines if line.number != line.index + 1), None)
    if shifted:
        yield QuirkMatch("benchmark-empty-line", shifted.number - 1)
    text_section = find_section(lines, BENCHMARK)
    if spec is None or text_section is None:
        return
    for place, name in enumerate(spec.section):
        field = _FIELDS.get(name, name)
        missing = place >= len(text_section.lines)
        if field and (missing or (field in ("workers", "iters", "models") and not getattr(section, field))):
            text = "nothing" if missing else text_section.lines[place].text
            yield QuirkMatch("benchmark-section", section.line, {"name": name, "said": text})
            return


def _lost(reader: Reader) -> Iterator[QuirkMatch]:
    """Yield the head line that the script overwrites with the profiler options, then with null."""
    spec = reader.dialect.benchmark
    place = spec.profile_line - 1 if spec else -1
    slot = next((entry for entry in reader.params.slots.values() if entry.index == place and entry.present), None)
    if slot and slot.key != "null" and not is_null(slot.full.strip()):
        yield QuirkMatch("benchmark-param-lost", slot.line, {"key": slot.key, "value": slot.full.strip()})


def _epochs(
    reader: Reader, section: BenchmarkSection, groups: list[Group], selected: bool
) -> Iterator[QuirkMatch]:
    spec, model = reader.dialect.benchmark, reader.value("model")
    if spec is None or section.epochs is None:
        return
    always = reader.dialect.bash_vars.get("epochs", {}).get("benchmark_train", "")
    if always and always != str(section.epochs):
        yield QuirkMatch("epochs-ignored", reader.line("epochs"), {"bash": always, "spec": section.epochs})
    for group in groups:
        cards = len(group.ids) * group.nodes
        factor = cards if spec.scales(model) else group.nodes * cards if spec.scale_epoch and selected else 1
        if factor > 1:
            values = {"bash": section.epochs * factor, "spec": section.epochs, "device": group.text}
            yield QuirkMatch("benchmark-epochs", section.line, values)
            return

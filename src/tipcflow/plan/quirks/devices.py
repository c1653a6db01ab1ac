"""Quirks of device groups: how a script interprets the entries of gpu_list."""

from collections.abc import Iterator

from tipcflow.params.values import NOTHING, is_null
from tipcflow.plan.bash.script_loops import BashScript
from tipcflow.plan.quirks.launch import on_cpu
from tipcflow.plan.quirks.match import QuirkMatch
from tipcflow.plan.source.call import Point
from tipcflow.plan.source.files import NoFiles
from tipcflow.plan.source.groups import Group, classify_bash
from tipcflow.plan.source.reader import Reader
from tipcflow.plan.source.scope import Scope, base_variables


def find_devices(reader: Reader, groups: list[Group], points: list[Point]) -> Iterator[QuirkMatch]:
    """Yield every quirk of the file's device groups."""
    for group in groups:
        yield from _by_length(reader, group)
        yield from _gpu_unset(reader, group)
        yield from _cpu_entry(reader, group)
    yield from _paired(reader, groups)
    yield from _leak(reader, points)


def _by_length(reader: Reader, group: Group) -> Iterator[QuirkMatch]:
    threshold, line = reader.dialect.threshold, reader.line("gpu_list")
    values = {"text": group.text, "gpus": group.gpus, "ips": group.ips_text, "nodes": group.nodes}
    if group.ips and len(group.gpus) <= 2:
        yield QuirkMatch("launcher-by-length", line, values)
    elif group.ips and len(group.ips_text) <= threshold:
        length = len(group.ips_text)
        yield QuirkMatch("ips-by-length", line, {**values, "length": length, "threshold": threshold})
    elif not group.ips and len(group.text) > 15:
        yield QuirkMatch("ids-by-length", line, {**values, "count": len(group.ids)})
    elif len(group.ids) == 1 and len(group.text) == 2:
        yield QuirkMatch("two-digit-id", line, values)
    if group.nodes > 1:
        yield QuirkMatch("every-node-infers", line, values)


def _gpu_unset(reader: Reader, group: Group) -> Iterator[QuirkMatch]:
    """Yield single-process steps declared for a GPU other than 0 that run without CUDA_VISIBLE_DEVICES."""
    first = group.ids[0] if group.ids else "0"
    if first == "0" or len(group.text) == 2:  # the latter has its own quirk
        return
    seen = classify_bash(group.index, group.text, reader.dialect)
    if seen.at_once:
        return
    before = reader.dialect.cuda.export_before if seen.export else ()
    single = ["train"] if group.form == "single" else []
    steps = single + [step for step in ("eval", "export", "infer") if not _is_set(step, before)]
    if steps:
        values = {"text": group.text, "steps": ", ".join(steps), "first": first}
        yield QuirkMatch("gpu-unset", reader.line("gpu_list"), values)


def _is_set(step: str, before: tuple[str, ...]) -> bool:
    """Whether CUDA_VISIBLE_DEVICES is set at a step, by that step or by an earlier one."""
    order = ("eval", "export", "infer")
    return any(earlier in before for earlier in order[: order.index(step) + 1])


def _cpu_entry(reader: Reader, group: Group) -> Iterator[QuirkMatch]:
    """Yield quirks of entry -1 (CPU): most scripts still pass the file's device argument."""
    if group.ids or reader.dialect.cpu_use_gpu or "{use_gpu" not in reader.dialect.train.single:
        return
    value = Scope(reader, base_variables(reader), group=group.index).get("use_gpu")
    if on_cpu(value) != value and reader.key("use_gpu") != "null":
        values = {"key": reader.key("use_gpu"), "value": value, "cpu": on_cpu(value)}
        yield QuirkMatch("cpu-entry-device", reader.line("use_gpu"), values)


def _paired(reader: Reader, groups: list[Group]) -> Iterator[QuirkMatch]:
    for name, slot in reader.params.slots.items():
        if is_null(slot.value) or slot.key == "null":
            continue
        items, kind = slot.items, reader.dialect.kind(name)
        values = {"value": slot.value, "items": 1, "groups": len(groups), "key": slot.key, "first": 2}
        if kind == "paired" and len(items) == 1 and len(groups) > 1:
            yield QuirkMatch("paired-missing", slot.line, values)
        elif groups and name == "use_gpu" and kind == "plain" and len(items) > 1:
            yield QuirkMatch("paired-unread", slot.line, values)


def _leak(reader: Reader, points: list[Point]) -> Iterator[QuirkMatch]:
    """Yield CUDA_VISIBLE_DEVICES leaks: without an export, the script keeps it for the next launch."""
    if len(points) < 2 or all(point.trainer.export not in NOTHING for point in points):
        return
    script = BashScript(reader.params, reader.dialect, mode=reader.mode, files=NoFiles())
    for call in script.calls():
        if call.kind == "train" and call.cuda is not None and "distributed.launch" in call.text and call.point:
            values = {"ids": call.cuda, "text": call.point.group.text}
            yield QuirkMatch("cuda-leak", reader.line("gpu_list"), values)
            return

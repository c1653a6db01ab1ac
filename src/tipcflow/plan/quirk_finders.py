"""One small function per quirk: does this file run into it?"""

from collections.abc import Iterator

from tipcflow.params.values import is_null, mode_entries
from tipcflow.plan.call import Point
from tipcflow.plan.groups import Group
from tipcflow.plan.legs import combinations, devices
from tipcflow.plan.quirk_found import Found
from tipcflow.plan.quirks_named import named
from tipcflow.plan.reader import Reader, sister_mode


def find_all(reader: Reader, groups: list[Group], points: list[Point]) -> Iterator[Found]:
    """Every quirk of the file, in no particular order; the same one may come twice."""
    yield from _groups(reader, groups)
    yield from _paired(reader, groups)
    if points:
        yield from _modes(reader)
        yield from _image(reader)
        yield from _from_norm(reader, points)
        yield Found("no-abort")
    yield from _legs(reader, points)
    yield from named(reader, groups, points)
    yield from _values(reader)
    yield from _cut(reader)


def _groups(reader: Reader, groups: list[Group]) -> Iterator[Found]:
    threshold, line = reader.dialect.threshold, reader.line("gpu_list")
    for group in groups:
        values = {"text": group.text, "gpus": group.gpus, "ips": group.ips_text, "nodes": group.nodes}
        if group.ips and len(group.gpus) <= 2:
            yield Found("launcher-by-length", line, values)
        elif group.ips and len(group.ips_text) <= threshold:
            length = len(group.ips_text)
            yield Found("ips-by-length", line, {**values, "length": length, "threshold": threshold})
        elif not group.ips and len(group.text) > 15:
            yield Found("ids-by-length", line, {**values, "count": len(group.ids)})
        elif len(group.ids) == 1 and len(group.text) == 2:
            yield Found("two-digit-id", line, values)
        if group.nodes > 1:
            yield Found("every-node-infers", line, values)


def _paired(reader: Reader, groups: list[Group]) -> Iterator[Found]:
    for name, slot in reader.params.slots.items():
        if reader.dialect.kind(name) != "paired" or is_null(slot.value) or slot.key == "null":
            continue
        items = slot.items
        if len(items) == 1 and len(groups) > 1:
            values = {"value": slot.value, "items": 1, "groups": len(groups), "key": slot.key, "first": 2}
            yield Found("paired-missing", slot.line, values)


def _modes(reader: Reader) -> Iterator[Found]:
    for name, slot in reader.params.slots.items():
        if reader.dialect.kind(name) != "modes" or is_null(slot.value) or slot.key == "null":
            continue
        entries = mode_entries(slot.value)
        other = sister_mode(reader.mode)
        values = {"key": slot.key, "mode": reader.mode, "value": slot.value, "other": other}
        if not entries:
            yield Found("mode-entry-bare", slot.line, values)
        elif reader.mode not in entries:
            yield Found("mode-entry" if other in entries else "mode-entry-none", slot.line, values)


def _image(reader: Reader) -> Iterator[Found]:
    value = reader.value("image")
    if reader.dialect.has("image-dropped") and not is_null(value):
        yield Found("image-dropped", reader.line("image"), {"key": reader.key("image"), "value": value})


def _from_norm(reader: Reader, points: list[Point]) -> Iterator[Found]:
    value, key = reader.value("pretrained"), reader.key("pretrained")
    for point in points:
        if point.trainer.from_norm != "no" and point.group.form != "nodes":
            values = {"trainer": point.trainer.name, "key": key, "value": value}
            yield Found("from-norm", reader.line(point.trainer.slot), values)


def _values(reader: Reader) -> Iterator[Found]:
    for name, slot in reader.params.slots.items():
        if reader.dialect.kind(name) == "key" or not slot.present or slot.key == "null":
            continue
        if slot.value != slot.full and reader.dialect.split == "first" and not slot.key.endswith("_url"):
            yield Found("colon-cut", slot.line, {"cut": slot.value, "value": slot.full})
        if slot.full != slot.full.strip() and slot.full.strip():
            yield Found("trailing-blank", slot.line)


def _cut(reader: Reader) -> Iterator[Found]:
    cut = reader.dialect.cut
    if not cut:
        return
    lost = [slot for slot in reader.params.slots.values() if slot.line > cut]
    for slot in lost[:1]:
        yield Found("cut", slot.line, {"cut": cut, "lost": slot.text})


def _legs(reader: Reader, points: list[Point]) -> Iterator[Found]:
    quants = {str(point.trainer.quant) for point in points} or set(reader.items("infer_quant"))
    for _, device in devices(reader):
        if device is None:
            continue
        for quant in quants:
            said = list(combinations(reader, device, quant, keep_defects=False))
            if len(said) > len(list(combinations(reader, device, quant, keep_defects=True))):
                yield Found("legs-skipped", reader.line("precision"))

"""Quirks of inference: arguments that the script loses, commands that it runs twice, exports that it omits."""

from collections.abc import Iterator

from tipcflow.params.specs import InferSpec
from tipcflow.params.values import NOTHING, is_null
from tipcflow.plan.quirks.listed_models import NO_SCRIPT, pretrained_weights
from tipcflow.plan.quirks.match import QuirkMatch
from tipcflow.plan.source.call import Point
from tipcflow.plan.source.legs import combinations, devices
from tipcflow.plan.source.reader import Reader


def find_legs(reader: Reader, points: list[Point]) -> Iterator[QuirkMatch]:
    """Yield every quirk of the file's inference."""
    yield from _not_exported(reader, points)
    if reader.dialect.sequence or not _infers(reader, points):
        return
    yield from _arguments_lost(reader)
    quants = {str(point.trainer.quant) for point in points} or set(reader.items("infer_quant"))
    for _, device in devices(reader):
        if device is None:
            continue
        spec = reader.dialect.cpu if device == "cpu" else reader.dialect.gpu
        yield from _listed_twice(reader, spec)
        for quant in sorted(quants):
            legs = list(combinations(reader, device, quant, keep_defects=False))
            yield from _repeat(reader, device.upper(), spec, legs)
            yield from _skipped(reader, legs, list(combinations(reader, device, quant, keep_defects=True)))


def _infers(reader: Reader, points: list[Point]) -> bool:
    """Whether inference runs: after an export, or of listed models."""
    exported = not points or any(point.trainer.export not in NOTHING for point in points)
    return exported and reader.value("inference") not in NOTHING


def _skipped(reader: Reader, spec: list[dict[str, str]], bash: list[dict[str, str]]) -> Iterator[QuirkMatch]:
    if len(spec) > len(bash):
        yield QuirkMatch("legs-skipped", reader.line("precision"))


def _arguments_lost(reader: Reader) -> Iterator[QuirkMatch]:
    """Yield the arguments of the file that the script's own commands do not have."""
    if not reader.dialect.has("infer-arguments-lost"):
        return
    texts = []
    for device in dict.fromkeys(device for _, device in devices(reader) if device):
        spec = reader.dialect.cpu if device == "cpu" else reader.dialect.gpu
        script = spec.model_copy(update={"command": spec.bash or spec.command})
        lost = [
            reader.key(slot)
            for slot in reader.params.slots
            if spec.uses(slot) and not script.uses(slot) and not _is_absent(reader, slot)
        ]
        if lost:
            texts.append(f"{_listed(lost)} on {device.upper()}")
    if texts:
        yield QuirkMatch("infer-arguments-lost", reader.line("inference"), {"lost": "; ".join(texts)})


def _listed_twice(reader: Reader, spec: InferSpec) -> Iterator[QuirkMatch]:
    for axis in spec.axes:
        items = reader.items(axis)
        if spec.uses(axis) and len(set(items)) < len(items):
            yield QuirkMatch("legs-twice", reader.line(axis), {"value": reader.value(axis)})


def _repeat(reader: Reader, device: str, spec: InferSpec, legs: list[dict[str, str]]) -> Iterator[QuirkMatch]:
    """Yield legs whose commands are equal because the script's command does not have an axis."""
    unused = [axis for axis in spec.axes if not spec.uses(axis) and len(set(reader.items(axis))) > 1]
    distinct = {tuple(word for axis, word in leg.items() if axis not in unused) for leg in legs}
    if unused and len(distinct) < len(legs):
        values = {
            "device": device,
            "keys": _listed([reader.key(axis) for axis in unused]),
            "count": len(legs),
            "repeated": len(legs) - len(distinct),
        }
        yield QuirkMatch("legs-repeat", reader.line(unused[0]), values)


def _not_exported(reader: Reader, points: list[Point]) -> Iterator[QuirkMatch]:
    """Yield pretrained weights that the file wants exported, and that the script does not export."""
    weights = pretrained_weights(reader)
    if points or not weights or reader.value("norm_export") in NO_SCRIPT:
        return
    values = {"key": reader.key("infer_export"), "weights": weights, "folder": reader.value("infer_model")}
    yield QuirkMatch("pretrained-not-exported", reader.line("infer_export"), values)


def _is_absent(reader: Reader, slot: str) -> bool:
    return reader.key(slot) in NOTHING or is_null(reader.value(slot))


def _listed(keys: list[str]) -> str:
    return ", ".join(f"'{key}'" for key in keys)

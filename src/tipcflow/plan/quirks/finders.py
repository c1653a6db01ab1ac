"""Quirk detection: one function per quirk reports whether a file triggers it."""

from collections.abc import Iterator

from tipcflow.params.values import NOTHING, is_null
from tipcflow.plan.quirks.devices import find_devices
from tipcflow.plan.quirks.legs import find_legs
from tipcflow.plan.quirks.match import QuirkMatch
from tipcflow.plan.quirks.named import named
from tipcflow.plan.quirks.values import find_values
from tipcflow.plan.source.call import Point
from tipcflow.plan.source.groups import Group
from tipcflow.plan.source.reader import Reader


def find_all(reader: Reader, groups: list[Group], points: list[Point]) -> Iterator[QuirkMatch]:
    """Yield every quirk of the file, unordered, possibly with duplicates."""
    yield from find_devices(reader, groups, points)
    yield from find_values(reader, points)
    if points:
        yield from _image(reader)
        yield from _from_norm(reader, points)
        yield from _infer_dir(reader, points)
        yield QuirkMatch("no-abort")
    else:
        yield from _listed(reader)
        yield from _one_folder(reader)
    yield from find_legs(reader, points)
    yield from named(reader, groups, points)


def _image(reader: Reader) -> Iterator[QuirkMatch]:
    value = reader.value("image")
    if reader.dialect.has("image-dropped") and not is_null(value):
        yield QuirkMatch("image-dropped", reader.line("image"), {"key": reader.key("image"), "value": value})


def _from_norm(reader: Reader, points: list[Point]) -> Iterator[QuirkMatch]:
    value, key = reader.value("pretrained"), reader.key("pretrained")
    for point in points:
        if point.trainer.from_norm != "no" and point.group.form != "nodes":
            values = {"trainer": point.trainer.name, "key": key, "value": value}
            yield QuirkMatch("from-norm", reader.line(point.trainer.slot), values)


def _infer_dir(reader: Reader, points: list[Point]) -> Iterator[QuirkMatch]:
    """Yield the quirk of a folder named null below the save folder."""
    dialect = reader.dialect
    if "{infer_dir}" not in dialect.model_dir or dialect.model_dir_null or reader.value("infer_dir") != "null":
        return
    if any(point.trainer.export not in NOTHING for point in points):
        yield QuirkMatch("infer-dir-null", reader.line("infer_dir"), {"key": reader.key("infer_dir")})


def _listed(reader: Reader) -> Iterator[QuirkMatch]:
    """Yield listed models that are null, in modes without training."""
    spec, models = reader.dialect.whole_infer, reader.items("infer_model")
    if not reader.has("weights_key") and any(word not in NOTHING for word in reader.items("infer_export")):
        yield QuirkMatch("export-keys-unset", reader.line("infer_export"))
    if spec.by_word or spec.once or spec.quantised or "null" not in models:
        return
    does = "ends the script" if spec.null_stops else "is inferred with, without a model's argument"
    yield QuirkMatch("null-model", reader.line("infer_model"), {"does": does})


def _one_folder(reader: Reader) -> Iterator[QuirkMatch]:
    """Yield the quirk of several exports by word into the one folder that the file names."""
    loop, spec = reader.dialect.sequence_loop, reader.dialect.whole_infer
    scripts = set(loop.scripts) if loop else set(spec.words.get(reader.mode, ())) if spec.by_word else set()
    words = [word for word in reader.items(loop.slot if loop else "infer_export") if word in scripts]
    if len(words) > 1:
        values = {"words": ", ".join(words), "folder": reader.value("save_infer")}
        yield QuirkMatch("exports-overwrite", reader.line("infer_export"), values)

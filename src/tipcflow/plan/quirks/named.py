"""Quirks of single suites' scripts: a dialect names them, this module detects whether a file triggers them."""

from collections.abc import Callable, Iterator
from posixpath import normpath

from tipcflow.domain import Compat
from tipcflow.params.values import NOTHING, is_null
from tipcflow.plan.quirks.listed_models import NO_SCRIPT
from tipcflow.plan.quirks.match import QuirkMatch
from tipcflow.plan.source.call import Point
from tipcflow.plan.source.files import NoFiles
from tipcflow.plan.source.groups import Group
from tipcflow.plan.source.legs import combinations, devices
from tipcflow.plan.source.reader import Reader
from tipcflow.plan.source.scope import Scope, amp_variables, base_variables

Finder = Callable[[Reader, list[Group], list[Point]], Iterator[QuirkMatch]]


def named(reader: Reader, groups: list[Group], points: list[Point]) -> Iterator[QuirkMatch]:
    """Yield the dialect's own quirks that this file triggers in this mode."""
    if reader.dialect.added:
        yield from _added(reader, groups, points)
    for quirk in reader.dialect.quirks:
        if quirk in _FINDERS:
            yield from _FINDERS[quirk](reader, groups, points)


def _epochs_ignored(reader: Reader, _: list[Group], points: list[Point]) -> Iterator[QuirkMatch]:
    bash = reader.dialect.bash_vars["epochs"].get("*", "")
    spec = Scope(reader, base_variables(reader)).get("epochs")
    if points and spec != bash:
        values = {"bash": bash, "spec": spec or "the framework's default number of"}
        yield QuirkMatch("epochs-ignored", reader.line("epochs"), values)


def _whole_infer_nothing(reader: Reader, _: list[Group], points: list[Point]) -> Iterator[QuirkMatch]:
    model = reader.value("infer_model")
    if not points and reader.value("export1") in NO_SCRIPT and not is_null(model):
        yield QuirkMatch("whole-infer-nothing", reader.line("export1"), {"model": model})


def _export_weights_lost(reader: Reader, _: list[Group], points: list[Point]) -> Iterator[QuirkMatch]:
    if points and any(part in reader.value("model") for part in reader.dialect.no_export_weights):
        yield QuirkMatch("export-weights-lost", reader.line("weights_key"))


def _multi_not_trained(reader: Reader, groups: list[Group], _: list[Point]) -> Iterator[QuirkMatch]:
    for group in groups:
        if group.form == "multi":
            values = {"text": group.text, "count": len(group.ids)}
            yield QuirkMatch("multi-not-trained", reader.line("gpu_list"), values)


def _device_clobbered(reader: Reader, groups: list[Group], points: list[Point]) -> Iterator[QuirkMatch]:
    if groups and len(points) > len(groups) and not is_null(reader.value("use_gpu")):
        yield QuirkMatch("device-clobbered", reader.line("use_gpu"), {"key": reader.key("use_gpu")})


def _weights_fallback(reader: Reader, _: list[Group], points: list[Point]) -> Iterator[QuirkMatch]:
    if points:
        values = {"weights": reader.value("weights_name")}
        yield QuirkMatch("weights-fallback", reader.line("weights_name"), values)


def _quant_unread(reader: Reader, _: list[Group], points: list[Point]) -> Iterator[QuirkMatch]:
    """Yield legs that a quantization word removes or adds, and that the script does not read."""
    if points:
        return
    for word in reader.items("infer_quant"):
        for __, device in devices(reader):
            if device is None:
                continue
            read = list(combinations(reader, device, word, keep_defects=False))
            if read != list(combinations(reader, device, "", keep_defects=True)):
                yield QuirkMatch("quant-unread", reader.line("infer_quant"))
                return


def _quant_misaligned(reader: Reader, _: list[Group], points: list[Point]) -> Iterator[QuirkMatch]:
    """Yield misaligned quantization words: the script indexes them by executed exports, not by list position."""
    spec, quants = reader.dialect.whole_infer, reader.items("infer_quant")
    words = reader.items("infer_export")
    taken = 0
    for count, word in enumerate(words):
        if points or word not in spec.words.get(reader.mode, ()):
            continue
        spec_quant, bash_quant = (quants[place] if place < len(quants) else "" for place in (count, taken))
        taken += 1
        if spec_quant != bash_quant:
            yield QuirkMatch(
                "quant-misaligned",
                reader.line("infer_quant"),
                {"word": word, "bash": bash_quant, "spec": spec_quant},
            )
            return


def _quant_folder(reader: Reader, _: list[Group], points: list[Point]) -> Iterator[QuirkMatch]:
    """Yield wrong folders of quantized models: the script's relative `cd` commands fit one path only."""
    cwd, model = reader.dialect.infer_cwd, reader.value("infer_model")
    folder = normpath(f"{model}/quant_post_static_model")
    fits = not folder.startswith("../") and normpath(f"{folder}/../../{cwd}") == cwd
    if not points and reader.value("export1") not in NO_SCRIPT and not fits:
        yield QuirkMatch("quant-folder", reader.line("infer_model"), {"model": model, "cwd": cwd})


def _amp_off(reader: Reader, _: list[Group], points: list[Point]) -> Iterator[QuirkMatch]:
    """Yield trainings with arguments for AMP, to which the suite's script appends one against it."""
    for point in points:
        added = amp_variables(reader, point.autocast)["amp"]
        if "AMP." in point.trainer.script and "use_amp=False" in added:
            yield QuirkMatch(
                "amp-off", reader.line(point.trainer.slot), {"trainer": point.trainer.name, "added": added}
            )


def _null_passed(reader: Reader, _: list[Group], points: list[Point]) -> Iterator[QuirkMatch]:
    key = reader.key("param1")
    if points and "lite_train_lite" in reader.mode and is_null(reader.value("param1")) and key not in NOTHING:
        yield QuirkMatch("null-passed", reader.line("param1"), {"key": key, "value": reader.value("param1")})


def _save_lost(reader: Reader, groups: list[Group], _: list[Point]) -> Iterator[QuirkMatch]:
    if any(group.form == "multi" for group in groups):
        yield QuirkMatch("save-lost", reader.line("save"), {"key": reader.key("save")})


def _added(reader: Reader, groups: list[Group], _: list[Point]) -> Iterator[QuirkMatch]:
    """Yield arguments of the training that are constants of the script, and whether spec passes them."""
    train = reader.dialect.train
    templates = [train.script_template(group.form) for group in groups]
    bash = base_variables(
        Reader(reader.params, reader.dialect, mode=reader.mode, compat=Compat.BASH, files=NoFiles())
    )
    spec = base_variables(reader)
    for quirk, passed in (("argument-added", True), ("argument-not-added", False)):
        texts = [
            bash[name]
            for name in reader.dialect.added
            if bash.get(name)
            and (bash[name] == spec.get(name)) is passed
            and any(f"{{{name}}}" in template for template in templates)
        ]
        if texts:
            values = {"added": " ".join(texts), "mode": reader.mode}
            yield QuirkMatch(quirk, reader.line("norm_train"), values)


def _always(quirk: str, slot: str) -> Finder:
    def find(reader: Reader, _: list[Group], points: list[Point]) -> Iterator[QuirkMatch]:
        if points:
            yield QuirkMatch(quirk, reader.line(slot))

    return find


def _of_script(quirk: str, slot: str) -> Finder:
    def find(reader: Reader, _: list[Group], __: list[Point]) -> Iterator[QuirkMatch]:
        if reader.value(slot) not in NOTHING:
            yield QuirkMatch(quirk, reader.line(slot))

    return find


_FINDERS: dict[str, Finder] = {
    "epochs-ignored": _epochs_ignored,
    "whole-infer-nothing": _whole_infer_nothing,
    "export-weights-lost": _export_weights_lost,
    "multi-not-trained": _multi_not_trained,
    "device-clobbered": _device_clobbered,
    "weights-fallback": _weights_fallback,
    "amp-off": _amp_off,
    "save-lost": _save_lost,
    "null-passed": _null_passed,
    "quant-unread": _quant_unread,
    "quant-misaligned": _quant_misaligned,
    "quant-folder": _quant_folder,
    "onnx-status": _of_script("onnx-status", "inference"),
    "export-not-run": _of_script("export-not-run", "ptq"),
    "pipeline-background": _of_script("pipeline-background", "inference"),
    "train-status": _always("train-status", "trainers"),
    "time-limit": _always("time-limit", "trainers"),
    "first-epoch-weights": _always("first-epoch-weights", "weights_name"),
}

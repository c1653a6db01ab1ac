"""Which kind of params file a text is, for those kinds that are known but not run."""

import re
from typing import Literal

from tipcflow.domain import Frozen
from tipcflow.params.lines import read_lines
from tipcflow.params.values import full_value

Kind = Literal[
    "train", "ptq", "klquant", "paddle2onnx", "pipeline", "dy2static", "infer_python", "serving", "cpp", "lite", ""
]

_TITLES: tuple[tuple[str, Kind], ...] = (
    (r"train_params", "train"),
    (r"base_train|amp_train", "dy2static"),
    (r"kl_quant_params", "klquant"),
    (r"ptq_params", "ptq"),
    (r"paddle2onnx_params", "paddle2onnx"),
    (r"pipeline_infer\w*_params", "pipeline"),
    (r"serving\w*_params", "serving"),
    (r"cpp_infer\w*_params", "cpp"),
    (r"infer_params", "infer_python"),
)
_REFUSED: dict[Kind, str] = {
    "serving": "a service is started in the background, its files are edited by line numbers, and whatever looks "
    "like it is killed afterwards: that is no run whose end can be judged",
    "cpp": "the test itself builds OpenCV and a C++ program with cmake: build it as a job of its own, and run "
    "the program by a chain of ours",
    "lite": "the test pushes files to a phone with adb: no node of a cluster can do that",
}


class Entry(Frozen):
    """One line of a file whose slots are not known: its physical line, key and value."""

    line: int
    key: str
    value: str


class FileKind(Frozen):
    """What a file is. `refused` is the reason why its kind is not run, '' when it is or when it is not known."""

    kind: Kind
    title: str = ""
    refused: str = ""
    entries: tuple[Entry, ...] = ()


def recognise(text: str) -> FileKind:
    """The kind of a params file by its first line and grammar; kind '' when it is none that is known."""
    lines = read_lines(text)
    first = lines[0].text.strip() if lines else ""
    title = first.strip("=").strip()
    entries = tuple(_entry(line.number, line.text) for line in lines if not line.text.startswith(("=", "#")))
    kind = _by_title(first, title)
    if not kind and first.startswith("runtime_device:"):
        kind = "lite"
    if not kind and first.startswith("#") and entries and not any(":" in e.key for e in entries):
        kind = "cpp" if all(" " in line.text or ":" not in line.text for line in lines[1:3]) else ""
    return FileKind(kind=kind, title=title, refused=_REFUSED.get(kind, ""), entries=entries)


def _by_title(first: str, title: str) -> Kind:
    if not first.startswith("="):
        return ""
    return next((kind for pattern, kind in _TITLES if re.fullmatch(pattern, title)), "")


def _entry(line: int, text: str) -> Entry:
    """`key:value`, or `key value` where there is no colon."""
    if ":" in text:
        return Entry(line=line, key=text.split(":")[0], value=full_value(text))
    key, _, value = text.partition(" ")
    return Entry(line=line, key=key, value=value.strip())

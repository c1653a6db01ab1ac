"""Kinds of params files: detects a file's script from its name and first lines."""

import re
from typing import Literal

from tipcflow.domain import Frozen
from tipcflow.params.lines import TextLine, read_lines
from tipcflow.params.values import full_value, split_list

Kind = Literal[
    "train",
    "ptq",
    "klquant",
    "paddle2onnx",
    "pipeline",
    "dy2static",
    "infer_python",
    "serving",
    "cpp",
    "lite",
    "results",
    "other",
]
Value = bool | int | float | str | None | tuple["Value", ...]

WHAT: dict[Kind, str] = {
    "train": "training and inference",
    "ptq": "quantization after training",
    "klquant": "quantization without training",
    "paddle2onnx": "conversion to ONNX",
    "pipeline": "a pipeline of several models",
    "dy2static": "dynamic against static training",
    "infer_python": "inference alone",
    "serving": "a service and its client",
    "cpp": "C++ inference",
    "lite": "inference on a phone",
    "results": "golden results",
    "other": "something else",
}
_REFUSED: dict[Kind, str] = {
    "serving": "a service is started in the background and has no defined end",
    "cpp": "the test builds OpenCV and a C++ program with cmake: build it in a separate job, then run "
    "the program in a tipcflow chain",
    "lite": "the test copies files to a phone with adb",
    "results": "these are expected values, not parameters",
    "other": "it has neither the layout nor the name of a params file",
}
# Files of these kinds are identified by their title, independent of their name.
_TITLES: tuple[tuple[str, Kind], ...] = (
    (r"base_train|amp_train", "dy2static"),
    (r"ptq_params", "ptq"),
    (r"paddle2onnx_params", "paddle2onnx"),
    (r"pipeline_infer\w*_params", "pipeline"),
    (r"serving\w*_params", "serving"),
    (r"cpp_infer\w*_params", "cpp"),
)
_NAMES: tuple[Kind, ...] = ("serving", "cpp", "paddle2onnx", "pipeline", "dy2static", "ptq")
_HEAD = 12


class Entry(Frozen):
    """One line of a file with unknown slots: its physical line, key and value."""

    line: int
    key: str
    value: str

    @property
    def typed(self) -> Value:
        """Return the value with its inferred type: None for null, a flag, a number, a list of them, or text."""
        items = split_list(self.value)
        return tuple(map(_typed, items)) if len(items) > 1 else _typed(self.value)


class FileKind(Frozen):
    """Kind of a params file.

    `refused` is the reason if files of this kind are not supported, otherwise ''; `entries` are then its lines.
    """

    kind: Kind
    title: str = ""
    refused: str = ""
    entries: tuple[Entry, ...] = ()

    @property
    def what(self) -> str:
        """Return the kind as text."""
        return WHAT[self.kind]


def recognise(text: str, name: str = "") -> FileKind:
    """Return the kind of a params file.

    Args:
        text: the file's content.
        name: the file's path; the last part and a folder named results are significant; '' if unknown.
    """
    lines = read_lines(text)
    title = lines[0].text.strip("= \r") if lines and lines[0].text.startswith("=") else ""
    kind = _kind(lines, title.lower(), name.replace("\\", "/").lower())
    entries = _entries(lines) if kind in _REFUSED else ()
    return FileKind(kind=kind, title=title, refused=_REFUSED.get(kind, ""), entries=entries)


def _kind(lines: tuple[TextLine, ...], title: str, path: str) -> Kind:
    folder, _, name = path.rpartition("/")
    head = [line.text.lower() for line in lines[:_HEAD]]
    if folder.endswith("results") or re.search(r"_results(_\w+)?\.txt$", name):
        return "results"
    if any(line.startswith("runtime_device:") for line in head) or "_lite_" in name:
        return "lite"
    titled = next((kind for pattern, kind in _TITLES if re.fullmatch(pattern, title)), None)
    if titled:
        return titled
    if _by_blanks(head):
        return "cpp"
    named = next((kind for kind in _NAMES if kind in name or kind in title), None)
    if named:
        return named
    if title == "kl_quant_params":
        return "klquant"
    if title == "train_params" or any(line.startswith("gpu_list:") for line in head):
        return "train"
    lists_models = any(line.startswith("infer_model:") for line in head)
    return "infer_python" if title == "infer_params" or lists_models else "other"


def _by_blanks(head: list[str]) -> bool:
    """Whether the lines have the form `key value`, after a comment or from `mode` on."""
    values = [line for line in head if not line.startswith("#")]
    keyed = bool(values) and all(":" not in line.split(" ")[0] and " " in line for line in values[:2])
    return bool(head) and head[0].startswith(("#", "mode ")) and keyed


def _entries(lines: tuple[TextLine, ...]) -> tuple[Entry, ...]:
    blanks = _by_blanks([line.text.lower() for line in lines[:_HEAD]])
    return tuple(_entry(line, blanks) for line in lines if not line.text.startswith(("=", "#")))


def _entry(line: TextLine, blanks: bool) -> Entry:
    """Parse `key:value`, or `key value` if `blanks` is set (separated by spaces)."""
    if not blanks:
        return Entry(line=line.number, key=line.text.split(":")[0], value=full_value(line.text).strip())
    key, _, value = line.text.partition(" ")
    return Entry(line=line.number, key=key, value=value.strip())


def _typed(text: str) -> Value:
    text = text.strip()
    if text in ("null", ""):
        return None
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    return float(text) if re.fullmatch(r"[+-]?\d*\.\d+(e[+-]?\d+)?", text) else text

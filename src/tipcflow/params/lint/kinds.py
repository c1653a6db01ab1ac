"""Which of the suites' scripts a params file is for, by its name and its first lines."""

import re
from dataclasses import dataclass, replace

from tipcflow.params.kinds import recognise
from tipcflow.params.lines import read_lines

_FIRST = 6


@dataclass(frozen=True)
class Kind:
    """A family of params files.

    `refused`: why tipcflow does not run it; '' for the one that makes chains.
    """

    name: str
    what: str
    refused: str = ""


TRAIN = Kind("train", "training and inference")
_KINDS = (
    Kind("results", "golden results", "these are expected values, not parameters"),
    Kind("lite", "inference on a phone", "it needs Paddle Lite and a device behind adb"),
    Kind("serving", "a service and its client", "its script starts a server and kills processes by name"),
    Kind("cpp", "C++ inference", "its script builds OpenCV and the demo with cmake first"),
    Kind("paddle2onnx", "conversion to ONNX", "it has no training and no inference legs"),
    Kind("pipeline", "a pipeline of several models", "it has no training and no single exported model"),
    Kind("dy2static", "dynamic against static training", "it holds several blocks, each trained twice"),
    Kind("ptq", "quantisation after training", "it has no training; its model comes from elsewhere"),
    Kind("infer_python", "inference alone", "it has no training; its models come from elsewhere"),
    Kind("other", "something else", "it has neither the layout nor the name of a params file"),
)
KINDS = {kind.name: kind for kind in (TRAIN, *_KINDS)}


def kind_of(text: str, name: str) -> Kind:
    """The family of a params file.

    Args:
        text: its content.
        name: its path; the last part counts, and a folder called results.
    """
    found = recognise(text)
    if found.refused:
        return replace(KINDS[found.kind], refused=found.refused)
    return KINDS[_name_of(text, name.replace("\\", "/"))]


def _name_of(text: str, path: str) -> str:
    folder, _, name = path.rpartition("/")
    name = name.lower()
    lines = [line.text for line in read_lines(text)[: 2 * _FIRST]]
    head = "\n".join(lines[:_FIRST]).lower()
    title = lines[0].strip("= \r").lower() if lines else ""
    if folder.endswith("results") or re.search(r"_results(_\w+)?\.txt$", name):
        return "results"
    if "runtime_device:" in head or "_lite_" in name:
        return "lite"
    for word in ("serving", "cpp"):
        if word in title or word in name:
            return word
    if head.startswith(("# model load config", "mode ")):
        return "cpp"
    for word in ("paddle2onnx", "pipeline", "dy2static"):
        if word in title or word in name:
            return word
    if title in ("base_train", "amp_train"):
        return "dy2static"
    if "ptq" in title or "ptq" in name:
        return "ptq"
    if any(line.startswith("gpu_list:") for line in lines) or title == "train_params":
        return "train"
    return "infer_python" if "infer_model:" in "\n".join(lines) else "other"

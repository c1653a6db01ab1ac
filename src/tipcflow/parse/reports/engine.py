"""What an inference process says that its engine really does.

    engine: device=cpu onednn=True tensorrt=False precision=fp32 threads=1 batch_size=1

is what the sample suite prints from the predictor's configuration, after it was made. Other suites say some of it
in their AutoLog report; there `precision` is only what the script was told, so it proves nothing.
"""

import re

from tipcflow.parse.text import strip_ansi

ENGINE_KEYS = ("device", "onednn", "tensorrt", "precision", "threads", "batch_size")

_LINE = re.compile(r"^\s*engine:((?:\s+\w+=\S+)+)\s*$", re.MULTILINE)
_PAIR = re.compile(r"(\w+)=(\S+)")

_FROM_AUTOLOG = {
    "runtime_device": "device",
    "enable_mkldnn": "onednn",
    "enable_tensorrt": "tensorrt",
    "cpu_math_library_num_threads": "threads",
    "batch_size": "batch_size",
}


def parse_engine(text: str) -> dict[str, str]:
    """The settings of the last `engine:` line, as printed; empty when there is none."""
    lines = _LINE.findall(strip_ansi(text))
    return dict(_PAIR.findall(lines[-1])) if lines else {}


def engine_from_autolog(fields: dict[str, str]) -> dict[str, str]:
    """The engine settings that an AutoLog report proves; a field printed as `None` proves nothing."""
    return {
        ours: fields[theirs]
        for theirs, ours in _FROM_AUTOLOG.items()
        if fields.get(theirs, "None") not in ("None", "")
    }

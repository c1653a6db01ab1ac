"""Parser of the engine settings that an inference process reports.

    engine: device=cpu onednn=True tensorrt=False precision=fp32 threads=1 batch_size=1

is printed by the sample suite from the configuration of the created predictor. Other suites report some of
these settings in their AutoLog report, where `precision` is only the script's argument and therefore not
evidence.
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
    """Return the settings of the last `engine:` line, as printed; empty if there is none."""
    lines = _LINE.findall(strip_ansi(text))
    return dict(_PAIR.findall(lines[-1])) if lines else {}


def engine_from_autolog(fields: dict[str, str]) -> dict[str, str]:
    """Return the engine settings that an AutoLog report proves; a field printed as `None` proves nothing."""
    return {
        ours: fields[theirs]
        for theirs, ours in _FROM_AUTOLOG.items()
        if fields.get(theirs, "None") not in ("None", "")
    }

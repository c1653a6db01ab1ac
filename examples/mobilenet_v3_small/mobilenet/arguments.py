"""Arguments as TIPC params files write them: `--key=value`, dashes or underscores, True and False as words."""

import argparse
import sys
from dataclasses import dataclass
from typing import NoReturn

MODELS = ("mobilenet_v3_small",)
DEFAULT_SEED = 2026

# Exit codes of every script of this suite, in addition to 0 and 1 (a crash).
BAD_INPUT = 2
MACHINE_CANNOT = 3


def refuse(message: str, code: int = BAD_INPUT) -> NoReturn:
    """Ends the process with one line on standard error."""
    print(f"error: {message}", file=sys.stderr, flush=True)
    raise SystemExit(code)


def switch(text: str) -> bool:
    """`True`, `False` and their usual spellings as a truth value."""
    words = {"true": True, "1": True, "on": True, "false": False, "0": False, "off": False}
    try:
        return words[text.lower()]
    except KeyError:
        raise argparse.ArgumentTypeError(f"expected True or False, found {text!r}") from None


def positive(text: str) -> int:
    """A whole number of at least one."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, found {text!r}")
    return int(text)


def share(text: str) -> float:
    """A number above 0 and below 1."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"expected a number between 0 and 1, found {text!r}")
    return value


@dataclass(frozen=True)
class Mixing:
    """Scaling of the loss in a training with mixed precision."""

    scale: float = 1024.0
    dynamic: bool = True
    level: str = "O1"


def mixing(auto_cast: str, settings: list[str], level: str = "O1") -> Mixing | None:
    """Returns the settings of mixed precision, None for fp32; ends the process with 2 if they contradict.

    Args:
        settings: `Global.use_amp=True`, `Global.scale_loss=1024.0`, `Global.use_dynamic_loss_scaling=True`, which
            test scripts append to `--auto-cast=amp`.
        level: O1 casts the inputs of operators that are safe in float16, O2 also the weights.
    """
    known = {"Global.use_amp": "", "Global.scale_loss": "1024.0", "Global.use_dynamic_loss_scaling": "True"}
    for text in settings:
        name, equals, value = text.partition("=")
        if name not in known or not equals:
            refuse(f"unknown setting {text}: expected KEY=VALUE with KEY one of {', '.join(known)}")
        known[name] = value
    try:
        used = switch(known["Global.use_amp"]) if known["Global.use_amp"] else auto_cast == "amp"
        scale, dynamic = float(known["Global.scale_loss"]), switch(known["Global.use_dynamic_loss_scaling"])
    except (ValueError, argparse.ArgumentTypeError) as problem:
        refuse(f"settings {' '.join(settings)}: {problem}")
    if used != (auto_cast == "amp"):
        refuse(f"--auto-cast={auto_cast} contradicts Global.use_amp={used}")
    if scale < 1.0:
        refuse(f"Global.scale_loss={scale:g}: expected 1 or more")
    return Mixing(scale, dynamic, level) if used else None


def parse(parser: argparse.ArgumentParser, words: list[str] | None = None) -> argparse.Namespace:
    """Parses the command line; an option may be written with underscores (`--use_gpu=True`)."""
    words = sys.argv[1:] if words is None else words
    return parser.parse_args([_dashed(word) for word in words])


def _dashed(word: str) -> str:
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value if name.startswith("--") else word

"""Arguments as TIPC params files write them: `--key=value`, dashes or underscores, True and False as words."""

import argparse
import sys
from typing import NoReturn

MODELS = ("mobilenet_v3_small",)
DEFAULT_SEED = 2026

# Exit codes of every script of this suite, beside 0 and 1 (a crash).
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


def parse(parser: argparse.ArgumentParser, words: list[str] | None = None) -> argparse.Namespace:
    """Parses the command line; an option may be written with underscores (`--use_gpu=True`)."""
    words = sys.argv[1:] if words is None else words
    return parser.parse_args([_dashed(word) for word in words])


def _dashed(word: str) -> str:
    name, equals, value = word.partition("=")
    return name.replace("_", "-") + equals + value if name.startswith("--") else word

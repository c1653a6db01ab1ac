"""Options that every test has, and their checks."""

import argparse
import sys
from typing import NoReturn

BACKENDS = ("gloo", "nccl")
JOIN_TIMEOUT_S = 120.0

# Exit codes of every script of this suite, in addition to 0 and 1 (a crash or a wrong result).
BAD_INPUT = 2
MACHINE_CANNOT = 3
RANK_MISSING = 4


def refuse(message: str, code: int = BAD_INPUT) -> NoReturn:
    """Ends the process with one line on standard error."""
    print(f"error: {message}", file=sys.stderr, flush=True)
    raise SystemExit(code)


def positive(text: str) -> int:
    """A whole number of at least one."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, found {text!r}")
    return int(text)


def seconds(text: str) -> float:
    """A time of more than 0 s."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"expected seconds, such as 60, found {text!r}")
    return value


def common_options(parser: argparse.ArgumentParser, *, seed: int, backend: str = "", short: bool = False) -> None:
    """Adds the options of the process group, of the device and of reproducibility.

    Args:
        seed: default of --seed.
        backend: default of --backend; '' for NCCL with a GPU and gloo without one.
        short: whether the options of the group also have one letter.
    """
    letters = {"init": ["-i"], "rank": ["-r"], "size": ["-s"]} if short else {"init": [], "rank": [], "size": []}
    parser.add_argument("--backend", choices=BACKENDS, default=backend or None, help="default: nccl with a GPU")
    parser.add_argument("--rank", *letters["rank"], type=int, help="of this process, from 0 on")
    parser.add_argument("--world-size", *letters["size"], type=positive, help="number of processes")
    parser.add_argument("--no-cuda", action="store_true", help="train on the CPU, also with a GPU")
    parser.add_argument("--seed", type=int, default=seed, help="equal seeds give equal losses")
    parser.add_argument("--output-dir", default="", help="folder for latest.pt, written by rank 0; default: none")
    parser.add_argument(
        "--timeout", type=seconds, default=JOIN_TIMEOUT_S, help="seconds that ranks wait for each other"
    )
    parser.set_defaults(letters=letters["init"])


def init_method_option(parser: argparse.ArgumentParser, default: str) -> None:
    """Adds --init-method."""
    letters = parser.get_default("letters") or []
    parser.add_argument("--init-method", *letters, default=default, help="tcp://address:port of rank 0, or env://")

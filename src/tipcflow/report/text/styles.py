"""The color of a status. The pages' style sheet uses the same tones (`static/app.css`)."""

from enum import StrEnum

from tipcflow.domain import Status


class Tone(StrEnum):
    """What a status means for the reader; also the name of the color in the pages' style sheet."""

    GOOD = "good"
    BETTER = "better"
    QUIET = "quiet"
    WAIT = "wait"
    INFRA = "infra"
    WORSE = "worse"
    BAD = "bad"


TONES = {
    Status.PASS: Tone.GOOD,
    Status.IMPROVEMENT: Tone.BETTER,
    Status.INSUFFICIENT_DATA: Tone.QUIET,
    Status.NOT_RUN: Tone.QUIET,
    Status.BLOCKED: Tone.WAIT,
    Status.CANCELLED: Tone.WAIT,
    Status.INFRA_FAILURE: Tone.INFRA,
    Status.UNCONFIRMED: Tone.WORSE,
    Status.REGRESSION: Tone.WORSE,
    Status.FAILED: Tone.BAD,
    Status.CONFIG_ERROR: Tone.BAD,
}
# Terminals have eight colors: `worse` is the red of `bad` without emphasis.
_TERMINAL = {
    Tone.GOOD: ("green", False),
    Tone.BETTER: ("cyan", True),
    Tone.QUIET: ("bright_black", False),
    Tone.WAIT: ("yellow", False),
    Tone.INFRA: ("magenta", True),
    Tone.WORSE: ("red", False),
    Tone.BAD: ("red", True),
}


def terminal_color(status: Status) -> tuple[str, bool]:
    """The ANSI color of a status and whether it is bold, by the names that click and rich share."""
    return _TERMINAL[TONES[status]]


def rich_style(status: Status) -> str:
    """The style of a status for rich."""
    color, bold = terminal_color(status)
    return f"bold {color}" if bold else color

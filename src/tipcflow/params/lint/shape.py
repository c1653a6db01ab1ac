"""Rules about lines: slots are identified by their position alone."""

from dataclasses import replace

from tipcflow.domain import ConfigError
from tipcflow.params.check import check_layout
from tipcflow.params.layout import Layout
from tipcflow.params.lines import TextLine
from tipcflow.params.lint.subject import Hit, Rule, Severity, Subject

_BEYOND = 10_000
COMPARE = "compare with a working file of the suite, line by line"


def crlf(subject: Subject) -> list[Hit]:
    """Windows line endings: the carriage return becomes part of every value."""
    numbers = [line.number for line in subject.lines if line.text.endswith("\r")]
    if not numbers:
        return []
    message = f"{len(numbers)} lines end with a carriage return, which becomes part of their values"
    return [Hit(numbers[0], message, "save the file with Unix line endings: sed -i 's/\\r$//' FILE")]


def blank_lines(subject: Subject) -> list[Hit]:
    """Whitespace-only lines count as lines, empty lines do not."""
    message = "a whitespace-only line takes the place of a slot and shifts all slots below"
    return [
        Hit(line.number, message, "delete the line")
        for line in subject.lines
        if not line.text.strip() and line.text.strip("\r")
    ]


def empty_lines(subject: Subject) -> list[Hit]:
    """Main scripts skip empty lines; scripts that search for a section title count them."""
    physical = subject.text.split("\n")
    while physical and physical[-1] == "":
        physical.pop()
    cut = subject.dialect.cut
    hits = []
    for number, line in enumerate(physical, start=1):
        if line != "":
            continue
        after = [text for text in physical[number:] if text.startswith("=") and "benchmark_params" in text]
        if after:
            message = "an empty line before a section: benchmark and to_static sections are read one line off"
            hits.append(Hit(number, message, "delete the empty line", Severity.ERROR))
        elif not cut or number <= cut:
            hits.append(Hit(number, "an empty line is skipped", "delete the empty line"))
    return hits


def cut_off(subject: Subject) -> list[Hit]:
    """Some scripts read only the first lines of the file."""
    cut = subject.dialect.cut
    lost = [slot for slot in subject.slots() if cut > 0 and slot.line > cut]
    if not lost:
        return []
    message = f"the script reads the first {cut} physical lines: {', '.join(slot.key for slot in lost)} not read"
    return [Hit(lost[0].line, message, "delete the empty lines above")]


def shape(subject: Subject) -> list[Hit]:
    """The first line that does not match the line map, with a fix."""
    layout = subject.dialect.line_map()
    lines = tuple(line for line in subject.lines if line.text.strip())
    lines = tuple(
        TextLine(index=index, number=line.number, text=line.text.rstrip("\r")) for index, line in enumerate(lines)
    )
    error = _problem(lines, layout)
    if error is None:
        return []
    # Only places in the line map matter: a line below it has no slot to shift.
    last = max((spec.line for spec in layout.slots.values()), default=0) + 1
    wrong = next((line for line in lines[: last + 1] if _fits(_blanked(lines, line), layout)), None)
    if wrong is not None:
        message = f"{layout.at(wrong.index)}: found {_short(wrong.text)}, expected {error.expected}"
        return [Hit(wrong.number, message, COMPARE)]
    missing = [place for place in range(min(len(lines), last) + 1) if _fits(_with_gap(lines, place), layout)]
    extra = [place for place in range(min(len(lines), last + 1)) if _fits(_without(lines, place), layout)]
    names = _names(layout, missing)
    if missing:
        first, last = (lines[min(max(place, 0), len(lines) - 1)].number for place in (missing[0] - 1, missing[-1]))
        message = f"a line is missing between lines {first} and {last}: all lines below are misread"
        return [Hit(last, message, f"add the missing line: {names}")]
    if extra:
        begin, end = lines[extra[0]], lines[extra[-1]]
        message = f"an extra line between lines {begin.number} and {end.number}: all lines below are misread"
        if begin is end:
            message = f"an extra line: {_short(end.text)}; all lines below are misread"
        return [Hit(end.number, message, "delete the extra line")]
    detail = f" (found {_short(error.found)}, expected {error.expected})" if error.expected else ""
    return [Hit(max(error.line, 1), f"{error.key or 'line'}: {error.what}{detail}", COMPARE)]


def _problem(lines: tuple[TextLine, ...], layout: Layout) -> ConfigError | None:
    try:
        check_layout(lines, file="", layout=layout)
    except ConfigError as error:
        return error
    return None


def _fits(lines: tuple[TextLine, ...], layout: Layout) -> bool:
    return _problem(lines, layout) is None


def _with_gap(lines: tuple[TextLine, ...], place: int) -> tuple[TextLine, ...]:
    """The lines with a gap at `place`; a line beyond the layout keeps the count."""
    moved = tuple(replace(line, index=line.index + 1) for line in lines[place:])
    return (*lines[:place], *moved, TextLine(index=_BEYOND, number=0, text="-"))


def _blanked(lines: tuple[TextLine, ...], without: TextLine) -> tuple[TextLine, ...]:
    """The lines, with one replaced by a line beyond the layout, which is not checked."""
    others = tuple(line for line in lines if line is not without)
    return (*others, TextLine(index=_BEYOND, number=0, text="-"))


def _without(lines: tuple[TextLine, ...], place: int) -> tuple[TextLine, ...]:
    moved = tuple(replace(line, index=line.index - 1) for line in lines[place + 1 :])
    return (*lines[:place], *moved)


def _names(layout: Layout, places: list[int]) -> str:
    named = [layout.at(place) or f"line {place + 1}" for place in places]
    return " or ".join(dict.fromkeys(named))


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


RULES = (
    Rule("crlf", Severity.ERROR, "the script recognizes no line, runs no command and exits with 0", crlf, True),
    Rule(
        "blank-line",
        Severity.ERROR,
        "a whitespace-only line counts as a line: all slots below are shifted, and often no command runs",
        blank_lines,
        True,
    ),
    Rule(
        "empty-line",
        Severity.NOTE,
        "skipped by the main script, but an error before a benchmark or to_static section, which is then read one "
        "line off",
        empty_lines,
        True,
    ),
    Rule(
        "line-shape",
        Severity.ERROR,
        "slots are identified by position alone: after a missing or extra line each slot gets another slot's "
        "value, without a message",
        shape,
        True,
    ),
    Rule("cut-off", Severity.ERROR, "some scripts read only the first 51 or 32 physical lines", cut_off),
)

# Rules that hold for files of every family.
ANY_FILE = tuple(rule for rule in RULES if rule.id in ("crlf", "blank-line"))

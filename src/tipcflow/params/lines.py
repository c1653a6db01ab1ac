"""From text to the array of lines that a suite's script indexes, without losing where each line stands."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextLine:
    """One non-empty line.

    Attributes:
        index: 0-based place in the array of non-empty lines; this is what a slot's position means.
        number: 1-based physical line, for messages.
        text: the line without its newline; blanks and a carriage return are kept.
    """

    index: int
    number: int
    text: str


def read_lines(text: str, *, cut: int = 0) -> tuple[TextLine, ...]:
    """The non-empty lines of `text`, as word splitting on newlines alone gives them.

    A line that holds only blanks is not empty. With `cut` > 0 only the first `cut` physical lines are looked
    at, as the scripts do that run the file through awk first; with -1 none is (a broken awk expression).
    """
    physical = text.split("\n")
    if cut:
        physical = physical[: max(cut, 0)]
    kept = [(number, line) for number, line in enumerate(physical, start=1) if line != ""]
    return tuple(TextLine(index=index, number=number, text=line) for index, (number, line) in enumerate(kept))

"""Lines of a params file: the array that a suite's script indexes, with physical line numbers."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextLine:
    """One non-empty line.

    Attributes:
        index: 0-based index in the array of non-empty lines, which is a slot's position.
        number: 1-based physical line number, for messages.
        text: the line without its newline; spaces and a carriage return are kept.
    """

    index: int
    number: int
    text: str


def read_lines(text: str, *, cut: int = 0) -> tuple[TextLine, ...]:
    """Return the non-empty lines of `text`, like shell word splitting on newlines only.

    A line with only spaces is not empty. With `cut` > 0 only the first `cut` physical lines are read, like
    scripts that filter the file with awk first; with -1 no line is read (a broken awk expression).
    """
    physical = text.split("\n")
    if cut:
        physical = physical[: max(cut, 0)]
    numbered = [(number, line) for number, line in enumerate(physical, start=1) if line != ""]
    return tuple(TextLine(index=index, number=number, text=line) for index, (number, line) in enumerate(numbered))

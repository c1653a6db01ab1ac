"""What rules look at, and what they answer."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from tipcflow.params.dialect import Dialect
from tipcflow.params.file import ParamsFile, Slot
from tipcflow.params.lines import TextLine, read_lines
from tipcflow.params.parse import read_params
from tipcflow.params.values import NOTHING


class Severity(StrEnum):
    """How bad a finding is.

    error: what the file says does not happen, and another text would make it happen. warning: the script's own
    doing, or something that is probably not meant. note: as intended, and good to know.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Hit:
    """A rule's answer: where (physical line, 1-based, 0 for the whole file), what, and what mends it.

    `severity` replaces the rule's own.
    """

    line: int
    message: str
    fix: str
    severity: Severity | None = None


@dataclass(frozen=True)
class Finding:
    """A hit with all that a person needs to act on it."""

    file: str
    line: int
    rule: str
    severity: Severity
    message: str
    fix: str

    def __str__(self) -> str:
        """Two lines, the first of which editors can jump from."""
        return f"{self.file}:{self.line}: {self.rule}: {self.severity}: {self.message}\n    fix: {self.fix}"


@dataclass(frozen=True)
class Subject:
    """One params file under examination.

    `cpu_lacks` gives the reason why this machine's CPU cannot do a precision word, '' where it can.
    """

    text: str
    dialect: Dialect
    cpu_lacks: Callable[[str], str] = lambda _: ""

    @cached_property
    def lines(self) -> tuple[TextLine, ...]:
        """The non-empty lines, all of them."""
        return read_lines(self.text)

    @cached_property
    def params(self) -> ParamsFile:
        """The file by position alone, nothing cut off."""
        return read_params(self.text, file="", dialect=self.dialect.model_copy(update={"cut": 0}))

    def slots(self) -> list[Slot]:
        """The slots that the file has, and that are not switched off by a key `null`."""
        return [slot for slot in self.params.slots.values() if slot.present and slot.key.strip() != "null"]

    def slot(self, name: str) -> Slot | None:
        """The slot of that name, None where layout or file have none."""
        slot = self.params.slots.get(name)
        return slot if slot and slot.present else None

    def items(self, name: str) -> list[str]:
        """The alternatives of a slot, without blanks at their ends; none where there is no such slot."""
        slot = self.slot(name)
        return [item.strip() for item in slot.items] if slot else []

    def listed(self, name: str) -> list[str]:
        """Like `items`, without null."""
        return [item for item in self.items(name) if item not in NOTHING]


Check = Callable[[Subject], "list[Hit]"]


@dataclass(frozen=True)
class Rule:
    """One question about a params file.

    Attributes:
        id: what findings are called.
        why: what the suites' scripts make of it, for the reference page.
        check: the question.
        shape: whether it can be asked of a file whose lines are not where they belong.
    """

    id: str
    severity: Severity
    why: str
    check: Check
    shape: bool = False

"""Input and output types of lint rules."""

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
    """Severity of a finding.

    error: the file does not have the intended effect, and a change of its text fixes it. warning: a defect of the
    script, or probably unintended. note: works as intended, for information.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Hit:
    """A match of a rule: where (physical line, 1-based, 0 for the whole file), what, and the fix.

    `severity` replaces the rule's own.
    """

    line: int
    message: str
    fix: str
    severity: Severity | None = None


@dataclass(frozen=True)
class Finding:
    """A hit with its file, rule and severity."""

    file: str
    line: int
    rule: str
    severity: Severity
    message: str
    fix: str

    def __str__(self) -> str:
        """Two lines; editors can jump to the location in the first."""
        return f"{self.file}:{self.line}: {self.rule}: {self.severity}: {self.message}\n    fix: {self.fix}"


@dataclass(frozen=True)
class Subject:
    """One params file under examination.

    `cpu_lacks` returns why this machine's CPU does not support a precision word, '' if it does.
    """

    text: str
    dialect: Dialect
    cpu_lacks: Callable[[str], str] = lambda _: ""

    @cached_property
    def lines(self) -> tuple[TextLine, ...]:
        """All non-empty lines."""
        return read_lines(self.text)

    @cached_property
    def params(self) -> ParamsFile:
        """The file parsed by position, without truncation."""
        return read_params(self.text, file="", dialect=self.dialect.model_copy(update={"cut": 0}))

    def slots(self) -> list[Slot]:
        """The slots that the file has and that are not disabled by a key `null`."""
        return [slot for slot in self.params.slots.values() if slot.present and slot.key.strip() != "null"]

    def slot(self, name: str) -> Slot | None:
        """The slot of that name, None if the layout or the file has none."""
        slot = self.params.slots.get(name)
        return slot if slot and slot.present else None

    def items(self, name: str) -> list[str]:
        """The stripped alternatives of a slot; empty if there is no such slot."""
        slot = self.slot(name)
        return [item.strip() for item in slot.items] if slot else []

    def listed(self, name: str) -> list[str]:
        """Like `items`, without null."""
        return [item for item in self.items(name) if item not in NOTHING]


Check = Callable[[Subject], "list[Hit]"]


@dataclass(frozen=True)
class Rule:
    """One rule for params files.

    Attributes:
        id: the name in findings.
        why: what suites' scripts do, for the reference page.
        check: returns the hits of a file.
        shape: whether the rule applies to a file whose lines are misplaced.
    """

    id: str
    severity: Severity
    why: str
    check: Check
    shape: bool = False

"""The line format of one family of suites."""

from dataclasses import dataclass

from tipcflow.parse.rules.groups_and_pairs import Rule
from tipcflow.parse.rules.reading import Reading


@dataclass(frozen=True)
class MutedSection:
    """Titles between which list lines (`GroupsRule.listed`) are ignored."""

    begin: str
    end: str


@dataclass(frozen=True)
class LineFormat:
    """The rules of one format. Several rules may match a line; each value is read once.

    Attributes:
        training, evaluation: rules; lines that match training rules are shown as training progress.
        mutes: titles of lists that are ignored.
        steady: digits are interchangeable for all rules (`tipcflow.parse.rules.reading`). False for
            user-defined patterns, whose lines are never read in bulk.
    """

    name: str
    training: tuple[Rule, ...] = ()
    evaluation: tuple[Rule, ...] = ()
    mutes: MutedSection | None = None
    steady: bool = True

    def recognises(self, line: str) -> bool:
        """Return whether the line is a training line, for the live display."""
        return any(rule.read(line) for rule in self.training)

    def read(self, line: str, *, muted: bool = False) -> list[Reading]:
        """Parse the line with all rules in order; evaluation rules come first because they are more specific.

        Args:
            line: without colors and without a rank prefix.
            muted: the line is in a list that is ignored.
        """
        taken: set[tuple[int, int]] = set()
        readings: list[Reading] = []
        for rule in (*self.evaluation, *self.training):
            if muted and getattr(rule, "listed", False):
                continue
            for reading in rule.read(line):
                places = {field.number for field in reading.fields}
                if not places & taken:
                    taken |= places
                    readings.append(reading)
        return readings

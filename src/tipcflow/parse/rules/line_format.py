"""How one family of suites prints its numbers."""

from dataclasses import dataclass

from tipcflow.parse.rules.groups_and_pairs import Rule
from tipcflow.parse.rules.reading import Reading


@dataclass(frozen=True)
class Mutes:
    """Titles between which the lines of a list (`GroupsRule.listed`) do not count."""

    begin: str
    end: str


@dataclass(frozen=True)
class LineFormat:
    """The rules of one format. A line may fit several of them; each number is read once.

    Attributes:
        training, evaluation: rules; lines of the first kind are shown as a training's progress.
        mutes: titles of lists that do not count.
        steady: digits are interchangeable for all rules (`tipcflow.parse.rules.reading`), but not where patterns
            are a user's: those lines are never read in bulk.
    """

    name: str
    training: tuple[Rule, ...] = ()
    evaluation: tuple[Rule, ...] = ()
    mutes: Mutes | None = None
    steady: bool = True

    def recognises(self, line: str) -> bool:
        """Whether the line is a training line, for the live display."""
        return any(rule.read(line) for rule in self.training)

    def read(self, line: str, *, muted: bool = False) -> list[Reading]:
        """What the line says, in the order of the rules, those of evaluation first: they are the narrower ones.

        Args:
            line: without colours, without a rank in front.
            muted: it stands in a list that does not count.
        """
        taken: set[tuple[int, int]] = set()
        found: list[Reading] = []
        for rule in (*self.evaluation, *self.training):
            if muted and getattr(rule, "listed", False):
                continue
            for reading in rule.read(line):
                places = {one.number for one in reading.fields}
                if not places & taken:
                    taken |= places
                    found.append(reading)
        return found

"""Two versions over all chains: what passes on one and not on the other."""

from collections import Counter
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from tipcflow.domain import Status
from tipcflow.report.overview.today import GREEN

# Kinds of pairs, worst first -> what they mean.
KINDS = {
    "broken": "passes on the base, not on the new version",
    "bad": "passes on neither",
    "fixed": "passes on the new version, not on the base",
    "passing": "passes on both",
    "new": "ran on the new version only",
    "missing": "ran on the base only",
}


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class Side(_Model):
    """The newest run of a chain on one version."""

    run: str
    status: Status
    started_at: float


class Pair(_Model):
    """A chain in one mode and environment class on both versions.

    Attributes:
        reason: of the new run if it is not green.
    """

    kind: str
    chain: str
    mode: str
    cluster: str
    environment: str
    base: Side | None
    new: Side | None
    reason: str = ""


class Versions(_Model):
    """Everything that the page shows.

    Attributes:
        base, new: framework builds, or first characters of suite commits.
        counts: kind -> number of pairs.
        pairs: the worst first.
    """

    schema_version: int = 1
    base: str
    new: str
    counts: dict[str, int]
    pairs: tuple[Pair, ...]

    @property
    def sentence(self) -> str:
        """The counts as a sentence."""
        ran = sum(pair.new is not None for pair in self.pairs)
        green = sum(pair.new is not None and pair.new.status in GREEN for pair in self.pairs)
        parts = [
            f"{self.counts[kind]} {words}"
            for kind, words in (("broken", "newly broken"), ("fixed", "fixed"), ("missing", "not run yet"))
            if self.counts.get(kind)
        ]
        against = f"; against {self.base}: {', '.join(parts) or 'no difference'}" if self.base else ""
        chains = "chain passes" if ran == 1 else "chains pass"
        return f"{green} of {ran} {chains} on {self.new}{against}"


def kind_of_pair(base: Status | None, new: Status | None) -> str:
    """Return the kind of a pair of statuses; None where the version was not run."""
    if new is None:
        return "missing"
    if base is None:
        return "new"
    if new in GREEN:
        return "passing" if base in GREEN else "fixed"
    return "broken" if base in GREEN else "bad"


def versions_of(base: str, new: str, pairs: Sequence[Pair]) -> Versions:
    """Return the overview of pairs in any order."""
    kinds = list(KINDS)
    ordered = sorted(
        pairs,
        key=lambda pair: (
            kinds.index(pair.kind),
            -(pair.new.status.severity if pair.new else 0),
            pair.chain,
            pair.mode,
            pair.environment,
        ),
    )
    return Versions(base=base, new=new, counts=dict(Counter(pair.kind for pair in ordered)), pairs=tuple(ordered))

"""What a run must prove, piece by piece (docs/adr/0012-expected-evidence.md)."""

from enum import StrEnum
from typing import Self

from tipcflow.domain.base import Frozen
from tipcflow.domain.numbers.history import without_repeat
from tipcflow.domain.plan import Plan


class Evidence(StrEnum):
    """What kind of evidence a piece is."""

    ITERATIONS = "train.iterations"
    LOSS = "train.loss"
    LENGTH = "train.length"
    RANK = "train.rank"
    METRIC = "metric"
    EVALUATION = "eval.metric"
    FILES = "files"
    REPORT = "infer.report"
    ENGINE = "infer.engine"
    AUTOLOG = "infer.autolog"
    PREDICTIONS = "predictions"


class Source(StrEnum):
    """What a piece of evidence is expected from."""

    PLAN = "plan"
    PEERS = "peers"
    HISTORY = "history"


class Expectation(Frozen):
    """One piece of evidence that a run must leave.

    Attributes:
        step, leg: what must leave it; `leg` is '' outside inference.
        rank, node: of a training process; -1 and '' where it is not about one.
        metric: the name of a number, '' for other evidence.
        source: `plan`: what every such step prints or writes; `peers`: expected of one when another of its kind
            (rank, leg) has it; `history`: the last accepted runs all had it.
        because: why, in words.
        epochs, iterations: how long the training is, as the params file says; 0 where it does not say.
    """

    schema_version: int = 1
    kind: Evidence
    step: str
    leg: str = ""
    rank: int = -1
    node: str = ""
    metric: str = ""
    source: Source = Source.PLAN
    because: str = ""
    epochs: int = 0
    iterations: int = 0

    @property
    def id(self) -> str:
        """Unique in a run: 'kind|step|leg|what'."""
        what = self.metric or ("" if self.rank < 0 else str(self.rank))
        return f"{self.kind.value}|{self.step}|{self.leg}|{what}"


class Declared(Frozen):
    """What the plan of an earlier run declared, whether its cluster could do it or not; ids without repeats."""

    run: str
    variants: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    legs: tuple[str, ...] = ()

    @classmethod
    def of(cls, run: str, plan: Plan) -> Self:
        """What the plan of a run declares."""
        steps = {without_repeat(step.id): step for step in plan.steps}
        return cls(
            run=run,
            variants=tuple(sorted({step.variant for step in plan.steps} - {""})),
            steps=tuple(sorted(steps)),
            legs=tuple(sorted(f"{name}/{leg.id}" for name, step in steps.items() for leg in step.legs)),
        )

    def without(self, now: "Declared") -> dict[str, tuple[str, ...]]:
        """`variant`, `step` or `leg` -> those that are not declared now; what goes with a variant or step is
        not listed by itself."""
        variants = tuple(one for one in self.variants if one not in now.variants)
        steps = tuple(one for one in self.steps if one not in now.steps and not _below(one, variants))
        legs = tuple(one for one in self.legs if one not in now.legs and not _below(one, (*variants, *steps)))
        return {what: gone for what, gone in (("variant", variants), ("step", steps), ("leg", legs)) if gone}


def _below(name: str, parents: tuple[str, ...]) -> bool:
    return any(name.startswith(f"{parent}/") for parent in parents)

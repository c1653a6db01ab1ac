"""Expected evidence of a run (docs/adr/0012-expected-evidence.md)."""

from enum import StrEnum
from typing import Self

from tipcflow.domain.base import Frozen
from tipcflow.domain.keys import EvidenceKey, LegKey, without_repeat
from tipcflow.domain.plan import Plan
from tipcflow.domain.run.names import StepId


class Evidence(StrEnum):
    """Kind of evidence."""

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
    PROOF = "proof"


class Source(StrEnum):
    """Source of an expectation."""

    PLAN = "plan"
    PEERS = "peers"
    HISTORY = "history"


class Expectation(Frozen):
    """One piece of evidence that a run must produce.

    Attributes:
        step, leg: the step or leg that must produce it; `leg` is '' outside inference.
        rank, node: rank and node of a training process; -1 and '' for other evidence.
        metric: name of a metric, or of the check that gives a proof; '' for other evidence.
        source: `plan`: every step of this kind prints or writes it; `peers`: another rank or leg of the same
            kind has it; `history`: all of the last accepted runs had it.
        because: the reason, as text.
        epochs, iterations: length of the training in the params file; 0 if it declares none.
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
    def key(self) -> EvidenceKey:
        """Return the key, unique in a run."""
        what = self.metric or ("" if self.rank < 0 else str(self.rank))
        return EvidenceKey(self.kind, self.step, self.leg, what)


class Declared(Frozen):
    """Declarations of an earlier run's plan, supported by its cluster or not; ids without repeats."""

    run: str
    variants: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    legs: tuple[LegKey, ...] = ()

    @classmethod
    def of(cls, run: str, plan: Plan) -> Self:
        """Return the declarations of a run's plan."""
        steps = {without_repeat(step.id): step for step in plan.steps}
        return cls(
            run=run,
            variants=tuple(sorted({step.variant for step in plan.steps} - {""})),
            steps=tuple(sorted(steps)),
            legs=tuple(
                sorted((LegKey(name, leg.id) for name, step in steps.items() for leg in step.legs), key=str)
            ),
        )

    def without(self, now: "Declared") -> dict[str, tuple[str, ...]]:
        """Return `variant`, `step` or `leg` -> ids that `now` lacks; parts of a removed variant or step are not
        listed separately."""
        variants = tuple(variant for variant in self.variants if variant not in now.variants)
        steps = tuple(step for step in self.steps if step not in now.steps and not _is_in(step, variants))
        removed = set(self.legs) - set(now.legs)
        legs = tuple(
            str(leg)
            for leg in self.legs
            if leg in removed and leg.step not in steps and not _is_in(leg.step, variants)
        )
        return {what: gone for what, gone in (("variant", variants), ("step", steps), ("leg", legs)) if gone}


def _is_in(step: str, variants: tuple[str, ...]) -> bool:
    return any(StepId.parse(step).is_in(variant) for variant in variants)

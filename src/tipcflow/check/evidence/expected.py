"""Expected evidence of a run, from plan, mode, suite file and history."""

from collections.abc import Iterable, Sequence

from tipcflow.check.evidence.found import known_of
from tipcflow.check.select import matches_any
from tipcflow.config.suite import Prints
from tipcflow.domain import (
    Evidence,
    EvidenceKey,
    Expectation,
    Leg,
    LegKey,
    PastRun,
    Plan,
    Source,
    Step,
    StepKind,
    without_repeat,
)
from tipcflow.domain.keys import SLOWEST
from tipcflow.domain.run.names import ModeName
from tipcflow.params.modes import BENCHMARK

# Kinds of evidence that the history has per training process, not per step.
_OF_RANKS = frozenset({Evidence.ITERATIONS, Evidence.LOSS, Evidence.RANK})


def expected(
    plan: Plan, prints: Prints, history: Sequence[PastRun] = (), *, min_history: int = 5
) -> tuple[Expectation, ...]:
    """Every piece of evidence that a run of the plan must leave, in the plan's order, each once.

    Args:
        prints: what the suite file declares about its logs.
        history: accepted runs that it is compared with, oldest first.
        min_history: evidence that this many last runs all had is expected; with fewer runs none is.
    """
    pieces: dict[EvidenceKey, Expectation] = {}
    benchmark = ModeName.parse(plan.mode).mode == BENCHMARK
    usual = _Usual(history, min_history)
    for step in plan.steps:
        if step.not_run or step.kind is StepKind.PREPARE:
            continue
        planned = _of_plan(step, prints, benchmark=benchmark)
        for piece in (*planned, *_of_history(step, prints, usual)):
            # The history of a piece of evidence is more specific than that of its peers.
            if piece.key not in pieces or pieces[piece.key].source is Source.PEERS:
                pieces[piece.key] = piece
    return tuple(pieces.values())


def node_of(step: Step, rank: int) -> str:
    """The node that a rank of a training belongs on."""
    per_node = max(1, step.world_size // len(step.nodes))
    return step.nodes[min(rank // per_node, len(step.nodes) - 1)]


def _of_plan(step: Step, prints: Prints, *, benchmark: bool) -> Iterable[Expectation]:
    if step.kind is StepKind.TRAIN:
        yield from _of_training(step, prints, benchmark=benchmark)
    if step.kind is StepKind.EVAL and prints.evaluation:
        yield Expectation(kind=Evidence.EVALUATION, step=step.id, because="an evaluation prints its metrics")
    if step.expects:
        because = f"it writes {', '.join(step.expects)}"
        yield Expectation(kind=Evidence.FILES, step=step.id, node=step.nodes[0], because=because)
    for leg in step.legs:
        if not leg.not_run:
            yield from _of_leg(step, leg)


def _of_training(step: Step, prints: Prints, *, benchmark: bool) -> Iterable[Expectation]:
    """Rank 0 must log; further ranks where one of their kind does, for many suites log on rank 0 alone."""
    loss = prints.loss and not benchmark
    for rank in range(max(1, step.world_size)):
        first = rank == 0
        for kind in (Evidence.ITERATIONS, *((Evidence.LOSS,) if loss else ())):
            yield Expectation(
                kind=kind,
                step=step.id,
                rank=rank,
                node=node_of(step, rank),
                source=Source.PLAN if first else Source.PEERS,
                because="rank 0 logs" if first else "expected when ranks of its kind log",
            )
    if not benchmark:
        yield Expectation(
            kind=Evidence.LENGTH,
            step=step.id,
            because="training length equals that of the other ranks and the params file",
            epochs=step.epochs,
            iterations=step.iterations,
        )


def _of_leg(step: Step, leg: Leg) -> Iterable[Expectation]:
    because = "a leg prints an AutoLog report or predictions"
    yield Expectation(kind=Evidence.REPORT, step=step.id, leg=leg.id, because=because)
    for kind in (Evidence.ENGINE, Evidence.AUTOLOG, Evidence.PREDICTIONS):
        yield Expectation(
            kind=kind,
            step=step.id,
            leg=leg.id,
            source=Source.PEERS,
            because="expected when another leg of the step has it",
        )


def _of_history(step: Step, prints: Prints, usual: "_Usual") -> Iterable[Expectation]:
    legs = {"", *(leg.id for leg in step.legs if not leg.not_run)}
    keys = {
        key: because for leg in legs for key, because in usual.of(LegKey(without_repeat(step.id), leg)).items()
    }
    for key, because in sorted(keys.items()):
        if matches_any(key.what, prints.may_be_missing) or key.what.endswith(SLOWEST):
            continue
        rank = int(key.what) if key.kind in _OF_RANKS else -1
        verb = "proves" if key.kind == Evidence.PROOF else "has"
        if rank < max(1, step.world_size):
            yield Expectation(
                kind=Evidence(key.kind),
                step=step.id,
                leg=key.leg,
                rank=rank,
                node=node_of(step, rank) if rank >= 0 else "",
                metric="" if rank >= 0 else key.what,
                source=Source.HISTORY,
                because=f"{because} {verb} it",
            )


class _Usual:
    """The evidence that each of the last accepted runs with a step or leg had."""

    def __init__(self, history: Sequence[PastRun], runs: int) -> None:
        self.history, self.runs = history, runs
        self.known = [known_of(past) for past in history]

    def of(self, part: LegKey) -> dict[EvidenceKey, str]:
        """Return evidence of a step or leg -> which runs have it, as text; empty with too few runs."""
        last = [at for at, past in enumerate(self.history) if past.counts_for(part)][-self.runs :]
        if len(last) < self.runs:
            return {}
        common = frozenset.intersection(*(self.known[at] for at in last))
        skipped = last[0] != len(self.history) - self.runs
        which = f" with this {'leg' if part.leg else 'step'}" if skipped else ""
        because = f"each of the last {self.runs} accepted runs{which}"
        return {key: because for key in common if (key.step, key.leg) == (part.step, part.leg)}

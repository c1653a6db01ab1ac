"""Proofs that earlier runs had: a check that could always decide and now cannot is not green."""

from collections.abc import Iterable, Sequence

from tipcflow.check.context import CheckContext
from tipcflow.check.evidence.result import pieces_of
from tipcflow.check.select import passed
from tipcflow.domain import CheckResult, Evidence, EvidenceKey, Expectation, Facts, Status

# Checks of what was computed, by what the framework or the network reported. Connections and GPU memory that were
# seen from outside are not among them: a short training may end between two looks.
_PROOFS = frozenset({"parity.chain", "ran.compression", "ran.group", "ran.training", "ran.weights"})


def proven_by(results: Iterable[CheckResult]) -> frozenset[EvidenceKey]:
    """The proofs of a run, without repeats: keys of the checks that passed for every repeat of a step or leg."""
    proven: dict[EvidenceKey, bool] = {}
    for result in results:
        if result.check in _PROOFS and result.step:
            key = _key(result).without_repeat()
            good = result.status is Status.PASS and not result.measured.is_seen_from_outside
            proven[key] = proven.get(key, True) and good
    return frozenset(key for key, good in proven.items() if good)


def require_proofs(facts: Facts, context: CheckContext, results: Sequence[CheckResult]) -> tuple[CheckResult, ...]:
    """Return the results, where a proof that each of the last accepted runs had and this run lacks is
    `unconfirmed`: it is unknown whether the model, the suite or a node is the cause."""
    wanted = {
        piece.key: piece
        for piece in pieces_of(facts, context)
        if piece.kind is Evidence.PROOF and passed(facts, piece.step, "") and passed(facts, piece.step, piece.leg)
    }
    judged = []
    for result in results:
        piece = wanted.pop(_key(result), None) if result.check in _PROOFS else None
        lacks = piece is not None and result.status is Status.INSUFFICIENT_DATA
        judged.append(_unproven(result, piece) if piece and lacks else result)
    return (*judged, *(_unproven(_nearest(piece, results), piece) for piece in wanted.values()))


def _key(result: CheckResult) -> EvidenceKey:
    return EvidenceKey(Evidence.PROOF, result.step, result.leg, result.check)


def _nearest(piece: Expectation, results: Sequence[CheckResult]) -> CheckResult:
    """The check's result for the leg's step, if it has no result for the leg."""
    same = [result for result in results if (result.check, result.step) == (piece.metric, piece.step)]
    open_ = (result.reason for result in same if not result.leg and result.status is Status.INSUFFICIENT_DATA)
    reason = next(open_, "the check had nothing to evaluate")
    return CheckResult(
        check=piece.metric, status=Status.INSUFFICIENT_DATA, reason=reason, step=piece.step, leg=piece.leg
    )


def _unproven(result: CheckResult, piece: Expectation) -> CheckResult:
    reason = f"{result.reason}; {piece.because}"
    return result.model_copy(update={"status": Status.UNCONFIRMED, "reason": reason})

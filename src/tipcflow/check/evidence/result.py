"""Did the run produce all expected evidence?"""

from collections.abc import Collection, Sequence
from typing import Any

from tipcflow.check.context import CheckContext
from tipcflow.check.evidence.expected import expected
from tipcflow.check.evidence.found import found_in
from tipcflow.check.evidence.missing import Missing, missing_in
from tipcflow.check.select import matches_any, passed
from tipcflow.domain import CheckResult, Evidence, EvidenceKey, Expectation, Facts, Source, Status
from tipcflow.domain.keys import SLOWEST
from tipcflow.domain.numbers.units import first_names

NAME = "ran.evidence"
_SHOWN = 4


def ran_evidence(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """Per step that passed and lacks evidence one `failed` (the model's code should have left it), `infra_failure`
    (we lost it) or `unconfirmed` (it is printed, and nothing was observed that computed it), which names each
    missing piece; otherwise one `pass` for the run."""
    pieces = pieces_of(facts, context)
    missing = missing_in(facts, pieces, context.prints)
    judged = [
        piece
        for piece in pieces
        if piece.kind is not Evidence.PROOF
        and passed(facts, piece.step, "")
        and passed(facts, piece.step, piece.leg)
    ]
    results = []
    for step, status in dict.fromkeys((gap.piece.step, gap.status) for gap in missing):
        gaps = [gap for gap in missing if (gap.piece.step, gap.status) == (step, status)]
        values = {"expected": len(judged), "missing": [str(gap.piece.key) for gap in gaps]}
        reason = first_names([_named(gap) for gap in gaps], _SHOWN)
        results.append(CheckResult(check=NAME, status=status, reason=reason, step=step, values=values))
    if results:
        return results
    if not judged:
        reason = "no step with required evidence passed"
        return [CheckResult(check=NAME, status=Status.INSUFFICIENT_DATA, reason=reason)]
    needed = [piece for piece in judged if piece.source is not Source.PEERS]
    history = sum(piece.source is Source.HISTORY for piece in needed)
    reason = f"all {len(needed)} expected items found ({history} required by history)"
    return [CheckResult(check=NAME, status=Status.PASS, reason=reason, values={"expected": len(needed)})]


def pieces_of(facts: Facts, context: CheckContext) -> tuple[Expectation, ...]:
    """Return the evidence that the run must produce, by its plan, its suite and its history: as recorded when the
    plan was made, and as computed now. A history that has become shorter since does not remove requirements."""
    history = [past for past in context.history if past.found or past.medians]
    now = expected(facts.plan, context.prints, history, min_history=context.policy.min_history)
    keys, planned = {piece.key for piece in now}, {(step.id, "") for step in facts.plan.steps}
    planned |= {(step.id, leg.id) for step in facts.plan.steps for leg in step.legs}
    recorded = (
        piece
        for piece in context.expected
        if piece.key not in keys
        and (piece.step, piece.leg) in planned
        and not matches_any(piece.metric, context.prints.may_be_missing)
        and not piece.metric.endswith(SLOWEST)
    )
    return (*now, *recorded)


def evidence_section(
    facts: Facts, context: CheckContext, proven: Collection[EvidenceKey] = ()
) -> list[dict[str, Any]]:
    """Expected against found, piece by piece, for the certificate: `state` is `found`, `missing` (`failed`),
    `lost` (`infra_failure`), `unproven` (`unconfirmed`), `not needed` (no peer has it) or `not judged` (the step
    or leg did not pass).

    Args:
        proven: the run's proofs (`proven_by`).
    """
    pieces = pieces_of(facts, context)
    missing: dict[EvidenceKey, list[Missing]] = {}
    for gap in missing_in(facts, pieces, context.prints):
        missing.setdefault(gap.piece.key, []).append(gap)
    evidence = found_in(facts, context.prints) | frozenset(proven)
    return [_entry(facts, piece, missing.get(piece.key, ()), evidence) for piece in pieces]


def _entry(
    facts: Facts, piece: Expectation, missing: Sequence[Missing], evidence: frozenset[EvidenceKey]
) -> dict[str, Any]:
    fields = piece.model_dump(mode="json", exclude={"schema_version"}, exclude_defaults=True)
    if not (passed(facts, piece.step, "") and passed(facts, piece.step, piece.leg)):
        state = "not judged"
    elif missing:
        states = {Status.FAILED: "missing", Status.UNCONFIRMED: "unproven", Status.INFRA_FAILURE: "lost"}
        state = next(name for status, name in states.items() if any(gap.status is status for gap in missing))
    elif piece.kind is Evidence.PROOF and piece.key.without_repeat() not in evidence:
        state = "unproven"
    else:
        state = (
            "not needed"
            if piece.source is Source.PEERS and piece.key.without_repeat() not in evidence
            else "found"
        )
    return {**fields, "state": state, **({"missing": [gap.what for gap in missing]} if missing else {})}


def _named(gap: Missing) -> str:
    return f"leg {gap.piece.leg}: {gap.what}" if gap.piece.leg else gap.what

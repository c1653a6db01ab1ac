"""Did the run produce all expected evidence?"""

from collections.abc import Collection, Sequence
from typing import Any

from tipcflow.check.context import CheckContext
from tipcflow.check.evidence.expected import expected
from tipcflow.check.evidence.found import found_in
from tipcflow.check.evidence.missing import Missing, missing_in
from tipcflow.check.evidence.suite_keys import inference_hint
from tipcflow.check.select import matches_any, passed
from tipcflow.domain import CheckResult, Evidence, EvidenceKey, Expectation, Facts, Source, Status
from tipcflow.domain.keys import SLOWEST
from tipcflow.domain.numbers.units import counted, first_names

NAME = "ran.evidence"
_SHOWN = 4


def ran_evidence(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """Per step that passed and lacks evidence one result, which names each missing piece; one `pass` for the run
    without a result, or with `insufficient_data` only.

    `failed`: the model's code should have left it. `infra_failure`: we lost it. `unconfirmed`: it is printed, and
    nothing was observed that computed it. `insufficient_data`: the job was too short for the node runner.
    """
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
        if status is Status.FAILED and any(gap.piece.kind is Evidence.REPORT for gap in gaps):
            reason += inference_hint(facts, context)
        results.append(CheckResult(check=NAME, status=status, reason=reason, step=step, values=values))
    if any(result.status is not Status.INSUFFICIENT_DATA for result in results):
        return results
    if not judged:
        reason = "no step with required evidence passed"
        return [CheckResult(check=NAME, status=Status.INSUFFICIENT_DATA, reason=reason)]
    absent = {gap.piece.key for gap in missing}
    needed = [piece for piece in judged if piece.source is not Source.PEERS and piece.key not in absent]
    history = sum(piece.source is Source.HISTORY for piece in needed)
    because = f", {history} of them because earlier runs have them" if history else ""
    reason = f"all expected evidence was found ({counted(len(needed), 'piece')}{because}){_lapsed(context)}"
    return [*results, CheckResult(check=NAME, status=Status.PASS, reason=reason, values={"expected": len(needed)})]


def _lapsed(context: CheckContext) -> str:
    """The legs whose earlier evidence is too old to be required, as the end of a reason."""
    legs = [f"{part}: {context.lapsed_reason(part)}" for part in sorted(context.lapsed) if part.leg]
    return "".join(f"; {text}" for text in legs[:1]) + (
        f"; {counted(len(legs) - 1, 'more leg')}" if legs[1:] else ""
    )


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
    `lost` (`infra_failure`), `unproven` (`unconfirmed`), `not sampled` (`insufficient_data`), `not needed` (no
    peer has it) or `not judged` (the step or leg did not pass).

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
        states = {
            Status.FAILED: "missing",
            Status.UNCONFIRMED: "unproven",
            Status.INFRA_FAILURE: "lost",
            Status.INSUFFICIENT_DATA: "not sampled",
        }
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

"""Did the run produce all expected evidence?"""

from collections.abc import Sequence
from typing import Any

from tipcflow.check.context import CheckContext
from tipcflow.check.evidence.expected import expected
from tipcflow.check.evidence.found import found_in
from tipcflow.check.evidence.missing import Missing, missing_in
from tipcflow.check.select import passed, some
from tipcflow.domain import CheckResult, Expectation, Facts, Source, Status, without_repeat

NAME = "ran.evidence"
_SHOWN = 4


def ran_evidence(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """Per step that passed and lacks evidence one `failed` (the model's code should have left it) or
    `infra_failure` (we lost it), which names each missing piece; else one `pass` for the run."""
    pieces = pieces_of(facts, context)
    missing = missing_in(facts, pieces, context.prints)
    judged = [piece for piece in pieces if passed(facts, piece.step, "") and passed(facts, piece.step, piece.leg)]
    results = []
    for step, status in dict.fromkeys((one.piece.step, one.status) for one in missing):
        mine = [one for one in missing if (one.piece.step, one.status) == (step, status)]
        values = {"expected": len(judged), "missing": [one.piece.id for one in mine]}
        reason = some([_named(one) for one in mine], _SHOWN)
        results.append(CheckResult(check=NAME, status=status, reason=reason, step=step, values=values))
    if results:
        return results
    if not judged:
        reason = "no step ended well that must leave evidence"
        return [CheckResult(check=NAME, status=Status.INSUFFICIENT_DATA, reason=reason)]
    needed = [piece for piece in judged if piece.source is not Source.PEERS]
    history = sum(piece.source is Source.HISTORY for piece in needed)
    reason = f"{len(needed)} expected pieces of evidence are there ({history} of them as in earlier runs)"
    return [CheckResult(check=NAME, status=Status.PASS, reason=reason, values={"expected": len(needed)})]


def pieces_of(facts: Facts, context: CheckContext) -> tuple[Expectation, ...]:
    """What the run must leave, by its plan, its suite and its history."""
    history = [past for past in context.history if past.found or past.medians]
    return expected(facts.plan, context.prints, history, min_history=context.policy.min_history)


def evidence_section(facts: Facts, context: CheckContext) -> list[dict[str, Any]]:
    """Expected against found, piece by piece, for the certificate: `state` is `found`, `missing` (`failed`),
    `lost` (`infra_failure`), `not needed` (no peer has it) or `not judged` (the step or leg did not pass)."""
    pieces = pieces_of(facts, context)
    missing: dict[str, list[Missing]] = {}
    for one in missing_in(facts, pieces, context.prints):
        missing.setdefault(one.piece.id, []).append(one)
    found = found_in(facts, context.prints)
    return [_entry(facts, piece, missing.get(piece.id, ()), found) for piece in pieces]


def _entry(facts: Facts, piece: Expectation, missing: Sequence[Missing], found: frozenset[str]) -> dict[str, Any]:
    fields = piece.model_dump(mode="json", exclude={"schema_version"}, exclude_defaults=True)
    kind, _, rest = piece.id.partition("|")
    key = f"{kind}|{without_repeat(piece.step)}{rest.removeprefix(piece.step)}"
    if not (passed(facts, piece.step, "") and passed(facts, piece.step, piece.leg)):
        state = "not judged"
    elif missing:
        state = "missing" if any(one.status is Status.FAILED for one in missing) else "lost"
    else:
        state = "not needed" if piece.source is Source.PEERS and key not in found else "found"
    return {**fields, "state": state, **({"missing": [one.what for one in missing]} if missing else {})}


def _named(one: Missing) -> str:
    return f"leg {one.piece.leg}: {one.what}" if one.piece.leg else one.what

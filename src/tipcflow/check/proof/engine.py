"""Did every leg run as declared: device, oneDNN, TensorRT, precision, threads, batch size?"""

from tipcflow.check.context import CheckContext
from tipcflow.check.evidence.predictors import predictor_runs, predictor_settings
from tipcflow.check.evidence.suite_keys import inference_hint
from tipcflow.check.select import inference_steps, leg_key
from tipcflow.config.suite import Prints
from tipcflow.domain import CheckResult, Facts, Leg, Status, Step
from tipcflow.domain.numbers.units import first_names
from tipcflow.parse import engine_from_autolog

NAME = "ran.engine"

_TRUE = frozenset({"true", "1", "on", "yes"})
_FALSE = frozenset({"false", "0", "off", "no"})


def ran_engine(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """Per inference step one result for the legs that ran as declared, one for those that leave settings open; one
    `failed` for each leg that ran otherwise, or that printed nothing at all: exit code 0 proves no inference. A
    log that was not fetched to its end proves neither."""
    return [result for step in inference_steps(facts) for result in _judged(facts, step, context)]


def _judged(facts: Facts, step: Step, context: CheckContext) -> list[CheckResult]:
    results, good, open_questions = [], [], []
    for leg in step.legs:
        if facts.leg_status.get(leg_key(step, leg.id)) is not Status.PASS:
            continue
        if not _proven(facts, step, leg.id, context.prints):
            status, reason = _without_evidence(facts, step, context)
            reason = f"leg {leg.id}: {reason}"
            results.append(CheckResult(check=NAME, status=status, reason=reason, step=step.id, leg=leg.id))
            continue
        wrong, unknown = _compared(leg, _with_observed(facts, step, leg), _reported_precision(facts, step, leg.id))
        if wrong:
            reason = "; ".join(
                f"declared {name}={declared}, ran with {name}={real}" for name, declared, real in wrong
            )
            values = {name: {"declared": declared, "actual": real} for name, declared, real in wrong}
            results.append(
                CheckResult(
                    check=NAME, status=Status.FAILED, reason=reason, step=step.id, leg=leg.id, values=values
                )
            )
        elif unknown:
            open_questions.append(f"{leg.id} ({', '.join(unknown)})")
        else:
            good.append(leg.id)
    if open_questions:
        reason = f"settings of {len(open_questions)} legs unknown: {first_names(open_questions)}"
        results.append(
            CheckResult(
                check=NAME,
                status=Status.INSUFFICIENT_DATA,
                reason=reason,
                step=step.id,
                values={"legs": open_questions},
            )
        )
    if good:
        reason = f"{len(good)} legs ran as declared"
        results.append(
            CheckResult(check=NAME, status=Status.PASS, reason=reason, step=step.id, values={"legs": good})
        )
    return results


def _without_evidence(facts: Facts, step: Step, context: CheckContext) -> tuple[Status, str]:
    """Status and reason of a leg that passed and whose log shows nothing.

    A log that was not fetched to its end proves nothing either way. Of a lost node, even the note of what was not
    fetched may be missing, but its step is an `infra_failure` or `cancelled`, and so the run is not green.
    """
    nothing = "log contains no evidence of execution"
    if unread := facts.cut.get(step.id, ()):
        return Status.INFRA_FAILURE, f"{nothing} ({'; '.join(unread)})"
    ended = facts.step_status.get(step.id)
    if ended in (Status.INFRA_FAILURE, Status.CANCELLED):
        return Status.INSUFFICIENT_DATA, f"{nothing}; the step ended as {ended.value}, its log may not be complete"
    return Status.FAILED, nothing + inference_hint(facts, context)


def actual_settings(facts: Facts, step: Step, leg: str) -> dict[str, str]:
    """Return the leg's effective settings: from its engine line, otherwise from its AutoLog report."""
    key = leg_key(step, leg)
    return {**engine_from_autolog(facts.autolog.get(key, {})), **facts.engine.get(key, {})}


def _with_observed(facts: Facts, step: Step, leg: Leg) -> dict[str, str]:
    """Return the leg's effective settings, those that it does not print by the framework probe.

    Paddle enables oneDNN by itself, and scripts set threads only for some devices: of these the probe only
    confirms what is declared.
    """
    printed, declared = actual_settings(facts, step, leg.id), _declared(leg)
    observed = {
        name: value
        for name, value in predictor_settings(facts, step, leg.id).items()
        if name in ("device", "tensorrt") or _equal(declared.get(name, ""), value)
    }
    return {**observed, **printed}


def _proven(facts: Facts, step: Step, leg: str, prints: Prints) -> bool:
    """Whether the leg's log shows an AutoLog report, an engine line or a prediction; of a suite that prints none,
    whether a predictor ran."""
    key = leg_key(step, leg)
    shown = any(source.get(key) for source in (facts.autolog, facts.engine, facts.predictions))
    return shown or (not prints.inference and predictor_runs(facts, step, leg) > 0)


def switch(text: str) -> bool | None:
    """Return a printed switch as a bool; None if it is not a switch."""
    lowered = text.strip().lower()
    return True if lowered in _TRUE else False if lowered in _FALSE else None


def _reported_precision(facts: Facts, step: Step, leg: str) -> str:
    """Return the precision in the leg's AutoLog report: the script's argument, not the effective precision."""
    return facts.autolog.get(leg_key(step, leg), {}).get("precision", "")


def _compared(
    leg: Leg, actual: dict[str, str], reported_precision: str
) -> tuple[list[tuple[str, str, str]], list[str]]:
    """(settings that differ: name, declared, actual), (settings without evidence)."""
    wrong, unknown = [], []
    for name, declared in _declared(leg).items():
        real = actual.get(name, "")
        if name == "precision" and not real and (reported_precision != declared or declared == "fp32"):
            # A report of another precision is proof enough of a difference, and fp32 is what engines do untold.
            real = reported_precision
        if not real:
            unknown.append(name)
        elif not _equal(declared, real):
            wrong.append((name, declared, real))
    return wrong, unknown


def _declared(leg: Leg) -> dict[str, str]:
    declared = {
        "device": leg.device,
        # oneDNN is an engine of CPUs: what a GPU leg declares about it has no effect.
        "onednn": leg.onednn if leg.device == "cpu" else None,
        "tensorrt": leg.tensorrt if leg.device == "gpu" else None,
        "precision": leg.precision or None,
        "threads": leg.threads if leg.device == "cpu" else None,
        "batch_size": leg.batch_size,
    }
    return {name: str(value) for name, value in declared.items() if value is not None}


def _equal(declared: str, real: str) -> bool:
    if switch(declared) is not None and not declared.isdigit():
        return switch(declared) is switch(real)
    return declared.lower() == real.lower().partition(":")[0]

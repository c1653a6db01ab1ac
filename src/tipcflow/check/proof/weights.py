"""Did the training change the parameters, and does the export contain them, by what the framework probe saw?"""

from tipcflow.check.context import CheckContext
from tipcflow.check.select import records, training_steps
from tipcflow.domain import CheckResult, Facts, ProcessReport, Status, Step, StepKind

NAME = "ran.weights"
# The first steps may leave the parameters as they are: warm-up from a learning rate of 0, skipped steps of AMP.
_STEPS = 5
# Of other types, small changes are in a master copy that the probe does not see.
_FULL = "float32"


def ran_weights(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per training that passed and was probed, and one per export of it: `failed` if no parameter
    changed, or the export has none of the training's parameters."""
    results = []
    for step in training_steps(facts):
        if facts.step_status.get(step.id) is not Status.PASS or not _probed(facts, step):
            continue
        training = _reports(facts, step)
        results.append(_trained(step, training))
        for export in facts.plan.steps:
            passed = facts.step_status.get(export.id) is Status.PASS
            if export.kind is StepKind.EXPORT and export.variant == step.variant and passed:
                results.append(_exported(export, training, _reports(facts, export)))
    return results


def _probed(facts: Facts, step: Step) -> bool:
    return any(record.probed for record in records(facts, step.id))


def _reports(facts: Facts, step: Step) -> list[ProcessReport]:
    return [report for record in records(facts, step.id) for report in record.processes]


def _result(step: Step, status: Status, reason: str, **values: object) -> CheckResult:
    return CheckResult(check=NAME, status=status, reason=reason, step=step.id, values=values)


def _trained(step: Step, reports: list[ProcessReport]) -> CheckResult:
    seen = [report for report in reports if report.steps and report.first and report.last]
    steps = max((report.steps for report in seen), default=0)
    if not seen:
        return _result(step, Status.INSUFFICIENT_DATA, "the probe saw no step of an optimizer: changes not proven")
    still = [report for report in seen if set(report.first) == set(report.last)]
    if len(still) < len(seen):
        return _result(step, Status.PASS, f"{steps} steps of an optimizer changed the parameters", steps=steps)
    if steps >= _STEPS and all(_FULL in report.dtype for report in still):
        return _result(step, Status.FAILED, f"{steps} steps of an optimizer changed no parameter", steps=steps)
    return _result(
        step, Status.INSUFFICIENT_DATA, f"no change of a parameter was seen in {steps} steps", steps=steps
    )


def _exported(export: Step, training: list[ProcessReport], reports: list[ProcessReport]) -> CheckResult:
    exported, loaded = _union(reports, "exported"), _union(reports, "loaded")
    saved, before = _union(training, "saved"), _union(training, "first")
    trained = saved | _union(training, "last")
    values = {"exported": len(exported), "trained": len(trained), "common": len(exported & trained)}

    def result(status: Status, reason: str) -> CheckResult:
        return _result(export, status, reason, **values)

    if not exported or not trained:
        what = "export" if not exported else "training"
        return result(Status.INSUFFICIENT_DATA, f"the probe saw no parameters of the {what}: content not proven")
    if exported & trained:
        return result(Status.PASS, "the export contains parameters of the training")
    if exported & before:
        return result(Status.FAILED, "the export contains the parameters from before the training")
    complete = saved and not any(report.dropped for report in training)
    if complete and not loaded:
        return result(
            Status.FAILED, "the export has no parameter of the training and loaded no weights: untrained"
        )
    if complete and not loaded & trained:
        return result(Status.FAILED, "the export loaded other weights than the training saved")
    return result(Status.INSUFFICIENT_DATA, "the export's parameters differ from those of the training")


def _union(reports: list[ProcessReport], kind: str) -> set[str]:
    return {name for report in reports for name in getattr(report, kind)}

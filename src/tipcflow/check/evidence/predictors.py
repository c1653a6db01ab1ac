"""What the framework probe observed of `paddle.inference` in the processes of a leg."""

from collections import Counter

from tipcflow.check.select import leg_key, records
from tipcflow.domain import Facts, ProcessReport, Status, Step
from tipcflow.domain.keys import PredictionKey

# Flag of a predictor -> setting of a leg.
_SETTINGS = {"gpu": "device", "onednn": "onednn", "tensorrt": "tensorrt", "threads": "threads"}


def predictor_runs(facts: Facts, step: Step, leg: str) -> int:
    """Return how often the leg's predictors ran, 0 without the probe."""
    return sum(report.predictions for report in _reports(facts, step, leg))


def predictor_settings(facts: Facts, step: Step, leg: str) -> dict[str, str]:
    """Return the settings that all predictors of the leg have in common; empty without a predictor that ran."""
    flags = [made for report in _reports(facts, step, leg) if report.predictions for made in report.predictors]
    common = {name for name in _SETTINGS if len({made.get(name, -1) for made in flags}) == 1}
    values = {_SETTINGS[name]: flags[0][name] for name in sorted(common) if name in flags[0]}
    return {
        name: ("gpu" if value else "cpu") if name == "device" else str(value) for name, value in values.items()
    }


def contradiction(facts: Facts, step: Step, leg: str) -> str:
    """Return why the classes that the leg's log names are not those of its predictor; '' if they may be.

    Only classes without the scores of all others are compared, which the suite's file declares as the highest of
    one output (`predictions`). Every named class must be an observed one. If both numbers are equal, each class
    must be named as often as it was observed. Outputs that are not a table of scores are not compared.
    """
    named = {image: len(scores) - 1 for image, scores in _printed(facts, step, leg).items()}
    reports = [report for report in _reports(facts, step, leg) if report.framework == "paddle"]
    observed = Counter(number for report in reports for number in report.classes)
    if not named or -1 in observed or not observed:
        return ""
    unexpected = next((image for image in sorted(named) if named[image] not in observed), None)
    if unexpected is not None:
        seen = ", ".join(str(number) for number in sorted(observed)[:5])
        more = ", …" if len(observed) > 5 else ""
        name = f"class {named[unexpected]} for {unexpected}"
        return f"the log names {name}, but the predictor's outputs have class {seen}{more}"
    counts = Counter(named.values())
    if counts.total() == observed.total() and counts != observed:
        worst = min(number for number in observed if counts[number] != observed[number])
        return (
            f"the log names class {worst} for {counts[worst]} of {len(named)} images, but it is the class of "
            f"{observed[worst]} of the predictor's outputs"
        )
    return ""


def unobserved(facts: Facts, step: Step, leg: str) -> tuple[Status, str] | None:
    """Return status and reason if the probe observed no predictor whose outputs the leg's log could have printed;
    None otherwise, and where the log has no line that the suite's file describes.

    A predictor that was made and never ran has no output: `failed`. Without any predictor, another library or an
    interpreter that does not load the probe may have computed what is printed: `unconfirmed`.
    """
    own = records(facts, step.id, leg)
    predictions = facts.predictions.get(leg_key(step, leg), {})
    described = [key for key, scores in predictions.items() if key.is_result or is_class_only(scores)]
    reports = _reports(facts, step, leg)
    if not described or not own or not all(record.probed for record in own):
        return None
    paddle = all("paddle" in fact.frameworks for fact in facts.node_facts if fact.node in step.nodes)
    if not paddle or any(report.notes for report in reports) or predictor_runs(facts, step, leg):
        return None
    suite_file = f"configs/suites/{facts.plan.suite}.yaml"
    results = f"the leg's log has results (predictions in {suite_file}), such as of {min(described).source}"
    if any(report.predictors for report in reports):
        return Status.FAILED, f"{results}, but its paddle.inference predictor was never run (framework probe)"
    unused = "no process of the leg used a paddle.inference predictor (framework probe)"
    return Status.UNCONFIRMED, f"{results}, but {unused}"


def _printed(facts: Facts, step: Step, leg: str) -> dict[PredictionKey, tuple[float, ...]]:
    """The predictions of the leg that are a class without the scores of the others."""
    return {
        image: scores
        for image, scores in facts.predictions.get(leg_key(step, leg), {}).items()
        if not image.is_result and is_class_only(scores)
    }


def is_class_only(scores: tuple[float, ...]) -> bool:
    """Whether a prediction has the score of its class only, which is the last one."""
    return bool(scores) and scores[-1] > 0 and not any(scores[:-1])


def _reports(facts: Facts, step: Step, leg: str) -> list[ProcessReport]:
    return [report for record in records(facts, step.id, leg) for report in record.processes]

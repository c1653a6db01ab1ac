"""What the framework probe observed of `paddle.inference` in the processes of a leg."""

from tipcflow.check.select import records
from tipcflow.domain import Facts, ProcessReport, Step

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


def _reports(facts: Facts, step: Step, leg: str) -> list[ProcessReport]:
    return [report for record in records(facts, step.id, leg) for report in record.processes]

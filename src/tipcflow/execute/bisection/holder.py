"""The run with which the result of a bisection is stored: the first run with the problem that is searched."""

from typing import TYPE_CHECKING

from tipcflow.domain import ConfigError, Run, Status
from tipcflow.domain.numbers.units import first_names
from tipcflow.execute.bisection.subject import Subject

if TYPE_CHECKING:
    from tipcflow.store import Store

_KEY = "run"
_LISTED = 12


def check_holder(store: "Store", run_id: str, subject: Subject, cluster: str) -> None:
    """Check that a result is about the problem of a run, before anything is measured.

    Args:
        cluster: that of the runs of the search.

    Raises:
        ConfigError: the run is unknown, of another chain, mode, semantics or cluster, or has no such problem.
    """
    run = store.runs.get(run_id)
    pairs = (
        ("chain", run.chain, subject.chain),
        ("mode", run.mode, subject.mode),
        ("semantics", run.compat, subject.compat),
        ("cluster", run.cluster, cluster),
    )
    for word, theirs, expected in pairs:
        if theirs != expected:
            raise ConfigError(
                f"run {run.id} has another {word} than the search", key=_KEY, found=theirs, expected=expected
            )
    if subject.is_failure:
        _check_failed(run)
        return
    moved = [
        each for alert in store.tracked_alerts.of_run(run.id) if alert.first == run.id for each in alert.metrics
    ]
    medians = store.history.past_run(run.id).medians
    known = [each.id for each in moved] or [(key.step, key.leg, key.metric) for key in medians]
    if not any(subject.matches(step, leg, name) for step, leg, name in known):
        places = sorted(" ".join(filter(None, (name, step, leg))) for step, leg, name in known)
        what = "has an alert about other metrics" if moved else "did not measure this metric"
        raise ConfigError(
            f"run {run.id} {what}",
            key=_KEY,
            found=subject.title,
            expected=f"one of {first_names(places, _LISTED)}" if places else "a run that measured the metric",
        )


def _check_failed(run: Run) -> None:
    if run.status is not Status.FAILED:
        status = run.status.value if run.status else "running"
        raise ConfigError(f"run {run.id} did not fail", key=_KEY, found=status, expected=Status.FAILED.value)

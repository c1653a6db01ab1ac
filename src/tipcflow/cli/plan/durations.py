"""Predicted durations of a plan's steps, from earlier runs."""

import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from tipcflow.config.settings import Settings
from tipcflow.domain import Plan, TipcflowError

if TYPE_CHECKING:
    from tipcflow.store import Store

_SQLITE = "sqlite:///"


@dataclass(frozen=True)
class Prediction:
    """Median seconds per step over `runs` past runs; steps without history are missing."""

    seconds: dict[str, float]
    runs: int

    @property
    def total(self) -> float:
        """The sum of all predicted steps in seconds."""
        return sum(self.seconds.values())


def predict(plan: Plan, settings: Settings) -> Prediction:
    """Predict durations from the newest accepted runs of the same chain, mode and cluster.

    A missing or unreadable database predicts nothing: planning never creates or changes one.
    """
    from tipcflow.store import Store

    if database_missing(settings.database_url):
        return Prediction({}, 0)
    try:
        with Store.open(settings.database_url, migrate=False) as store:
            return _predicted(store, plan)
    except TipcflowError as error:
        print(f"no predicted minutes: {error.message}", file=sys.stderr)  # noqa: T201
        return Prediction({}, 0)


def _predicted(store: "Store", plan: Plan) -> Prediction:
    from tipcflow.execute.changes.fitted import GOOD, good_runs

    past = good_runs(store, plan)
    planned = {step.id for step in plan.steps}
    took: dict[str, list[float]] = {}
    for run in past:
        for attempt in store.attempts.of(run.id):
            if attempt.step in planned and attempt.status in GOOD and attempt.duration_s is not None:
                took.setdefault(attempt.step, []).append(attempt.duration_s)
    return Prediction({step: median(seconds) for step, seconds in took.items()}, len(past))


def database_missing(url: str) -> bool:
    """Whether the URL refers to a SQLite file that does not exist."""
    if not url.startswith("sqlite"):
        return False
    path = url.partition(_SQLITE)[2].partition("?")[0]
    return not path or not Path(path).is_file()

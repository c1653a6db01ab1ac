"""A chain whose runs are stored as an execution would store them."""

import itertools
import random
from collections.abc import Callable

from tests.support.stories import T0, a_run, losses, record_run

from tipcflow.domain import Run, Status
from tipcflow.domain.run_documents import IncomparableDocument
from tipcflow.execute.bisection.commits import Commit
from tipcflow.store import Store

COMMITS = tuple(Commit(f"{number:040x}", f"Change {number}") for number in range(17))
CHAIN = a_run().chain
Value = Callable[[int], float | Status]


def noisy(change: int, size: float, noise: float, seed: int = 1) -> Value:
    source = random.Random(seed)
    return lambda place: (size if place >= change else 1.0) * source.gauss(1.0, noise)


class Chain:
    """Stores a run for each execution; `value` of a commit is its batch_cost, or the status without one."""

    def __init__(self, store: Store, value: Value) -> None:
        self.store, self.value = store, value
        self.numbers = itertools.count(1)
        self.executed: list[int] = []

    def __call__(self, commit: Commit, **fields: object) -> Run:
        place, number = COMMITS.index(commit), next(self.numbers)
        self.executed.append(place)
        known = {
            "suite_commit": commit.id, "created_at": T0 + 100 * number, "trigger": "bisect", "environment": "cpu",
            "mode": a_run().mode,
        }  # fmt: skip
        run = a_run(f"run-{number}", **{**known, **fields})
        report = self.value(place)
        if isinstance(report, Status):
            if report is Status.CONFIG_ERROR:
                run = run.model_copy(update={"suite_commit": "", "environment": ""})
            self.store.runs.create(run)
            self.store.runs.finish(run.id, report, f"it is {report.value}", run.created_at + 60)
        else:
            run = record_run(self.store, run)
            self.store.measurements.add(losses(run.id, [report], metric="batch_cost", unit="s"))
        if run.trigger == "bisect":
            self.store.documents.put(run.id, IncomparableDocument(why="bisection"))
        return self.store.runs.get(run.id)

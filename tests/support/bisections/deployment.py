"""A deployment with regressions and failures, to find out which of them are bisected."""

import itertools
import shutil
from pathlib import Path
from typing import Any, Self

from tests.support.stories import T0, a_plan, a_run, copy_example, open_store

from tipcflow.domain import CheckResult, Run, Status
from tipcflow.execute.alerts.track import track_alerts
from tipcflow.execute.request import RequestDocument, RunRequest

ROOT = Path(__file__).parents[3]
DAY = 86_400.0


def commit(number: int) -> str:
    """The suite commit of the run with this number."""
    return f"{number:02x}" * 20


class Deployment:
    """Runs of chains, one a day; `now` is after the newest."""

    def __init__(self, home: Path) -> None:
        self.home, self.configs = home, home / "configs"
        shutil.copytree(ROOT / "configs" / "policies", self.configs / "policies")
        (self.configs / "clusters").mkdir()
        copy_example(self.configs / "clusters" / "local.yaml")
        self.store = open_store(home / "tipcflow.db")
        self.numbers = itertools.count(1)
        self.now = T0 + DAY

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.store.close()

    def policy(self, **rule: Any) -> None:
        """Set the key `bisect` of the policy `pr`."""
        path = self.configs / "policies" / "pr.yaml"
        lines = [line for line in path.read_text().splitlines() if not line.startswith("bisect:")]
        path.write_text("\n".join([*lines, f"bisect: {{{', '.join(f'{k}: {v}' for k, v in rule.items())}}}\n"]))

    def run(self, name: str, status: Status, results: tuple[CheckResult, ...] = (), **fields: Any) -> Run:
        """Store a judged run of a chain."""
        number = next(self.numbers)
        at = T0 + number * 3600
        self.now = at + DAY
        known = {
            "chain": f"sample/{name}/train",
            "model": name,
            "environment": "cpu",
            "framework": "paddle 3.3",
            "suite_commit": commit(number),
            "created_at": at,
            "ended_at": at + 60,
            "status": status,
        }
        run = a_run(f"{name}-{number:02}", **(known | fields))
        params_file = f"test_tipc/configs/{name}/train.txt"
        self.store.runs.create(run, a_plan(chain=run.chain, params_file=params_file))
        request = RunRequest(params_file, "sample", run.mode, "local", self.configs)
        self.store.documents.put(run.id, RequestDocument(request))
        self.store.checks.replace(run.id, list(results))
        track_alerts(self.store, run, results)
        return run

    def good(self, name: str, **fields: Any) -> Run:
        """Store a run that passed."""
        return self.run(name, Status.PASS, (_result(Status.PASS, 1.0),), **fields)

    def regression(self, name: str, **fields: Any) -> str:
        """Store a good run and a regression; return the ID of the regression."""
        self.good(name)
        return self.regressed(name, **fields)

    def regressed(self, name: str, **fields: Any) -> str:
        """Store a run with a regression; return its ID."""
        return self.run(name, Status.REGRESSION, (_result(Status.REGRESSION, 1.2),), **fields).id

    def failure(self, name: str, status: Status, **fields: Any) -> str:
        """Store a good run and a failed one; return the ID of the failed one."""
        self.good(name)
        return self.run(name, status, **fields).id


def _result(status: Status, ratio: float) -> CheckResult:
    return CheckResult(
        check="speed.batch_cost",
        status=status,
        reason=f"batch_cost is {ratio} of the baseline",
        step="v/train",
        metric="batch_cost",
        values={"ratio": ratio},
    )

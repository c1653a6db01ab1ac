"""Tasks of a run on workers without a shared folder: processes with own homes, one database, one object store."""

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.certify import DEADLINE_S, ROOT, TIPCFLOW, Site
from tests.support.tasks import Tasks

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Run, Status, StepKind
from tipcflow.execute.run import opening
from tipcflow.execute.run import phases as task_phases

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
ORDER = (StepKind.PREPARE, StepKind.TRAIN, StepKind.EVAL, StepKind.EXPORT, StepKind.INFER_CPU)
# A task as a process: what it does is the last argument.
TASK = """
import sys
from tipcflow.config.settings import settings
from tipcflow.execute.progress import Kind
from tipcflow.execute.run import phases
from tipcflow.execute.run.context import TaskContext
from tipcflow.execute.run.step import StepTask
from tipcflow.store import Store
from tipcflow.transport.connect import connect

run, what = sys.argv[1:]
store = Store.open()
report = lambda event: event.kind is Kind.NOTE and print(event.text, flush=True)
context = TaskContext(run, store, settings().home, connect, report)
if what == "acquire":
    assert context.acquire() == ""
    phases.prepare_nodes(context)
elif what == "finish":
    phases.collect_run(context)
    phases.release_run(context)
    phases.judge_run(context)
    phases.finish_run(context)
else:
    step = next(step for step in context.plan.steps if step.kind.value == what)
    with context.nodes(*step.nodes) as nodes:
        part = StepTask(context, step, step.nodes, nodes)
        part.begin()
        assert part.watch(90)
        print(part.end())
"""


class Workers:
    """Workers 1 and 2: each task of a run is a process on one of them."""

    def __init__(self, site: Site, folder: Path) -> None:
        self.site, self.tasks = site, Tasks(site)
        self.homes = {number: folder / f"worker-{number}" for number in (1, 2)}
        self.store = folder / "store"
        self.store.mkdir()
        self.url = f"file://{self.store}"

    def env(self, worker: int) -> dict[str, str]:
        # The database is that of the site, the home of the worker alone.
        database = self.site.database_url or f"sqlite:///{self.site.home / 'tipcflow.db'}"
        own = {"TIPCFLOW_HOME": str(self.homes[worker]), "TIPCFLOW_DATABASE_URL": database}
        return {**self.site.env, **own, "TIPCFLOW_STORE": self.url}

    def do(self, worker: int, what: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", TASK, self.tasks.run, what],
            env=self.env(worker),
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def resolve(self, worker: int, monkeypatch: pytest.MonkeyPatch) -> None:
        with monkeypatch.context() as patch:
            for name, value in self.env(worker).items():
                patch.setenv(name, value)
            opening.resolve_run(self.tasks.store, self.tasks.run, self.tasks.request(), home=self.homes[worker])

    def steps(self, worker: int) -> None:
        for kind in ORDER:
            assert "Status.PASS" in self.do(worker, kind.value)

    @property
    def run(self) -> Run:
        return self.tasks.store.runs.get(self.tasks.run)

    def command(self, worker: int, *words: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [str(TIPCFLOW), *words],
            env=self.env(worker),
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )


@pytest.fixture
def workers(nodes: LocalNodes, tmp_path: Path) -> Iterator[Workers]:
    made = Workers(Site(tmp_path, nodes), tmp_path)
    yield made
    task_phases.release_run(made.tasks.context())


def test_certificate_of_another_worker_is_complete(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    workers.resolve(1, monkeypatch)
    workers.do(2, "acquire")
    workers.steps(1)
    workers.do(2, "finish")
    run = workers.run
    assert run.status is Status.PASS, run.reason
    first, second = (workers.homes[number] / "runs" / run.id for number in (1, 2))
    certificate = json.loads((second / "certificate.json").read_text())
    fetched = {path.relative_to(first).as_posix() for path in first.glob("*/*/**/*") if path.is_file()}
    assert set(certificate["files"]) == fetched
    assert len(fetched) > 20
    assert list(second.glob("*/*/**/*")) == [], "worker 2 fetched nothing from nodes"
    assert (workers.store / "runs" / run.id / "certificate.json").read_bytes() == (
        second / "certificate.json"
    ).read_bytes()
    for worker in (1, 2):
        done = workers.command(worker, "certificate", "verify", run.id)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"({len(fetched)} of {len(fetched)} collected files checked)" in done.stdout
    printed = [workers.command(worker, "logs", run.id, "train").stdout for worker in (1, 2)]
    assert printed[0] == printed[1]
    assert "loss" in printed[0]


@pytest.mark.full
def test_worker_without_the_store_is_an_infra_failure(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    workers.url = ""
    workers.homes[2] = workers.homes[1]
    workers.resolve(1, monkeypatch)
    workers.do(1, "acquire")
    workers.steps(1)
    workers.homes[2] = workers.homes[1].with_name("other")
    workers.do(2, "finish")
    assert workers.run.status is Status.INFRA_FAILURE
    assert "are not on this machine" in workers.run.reason
    assert "all workers must share one" in workers.run.reason


def test_lost_and_damaged_objects_are_an_infra_failure(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    workers.resolve(1, monkeypatch)
    workers.do(1, "acquire")
    workers.steps(1)
    logs = (workers.store / "runs").rglob("main.log*")
    lost, damaged, *_ = sorted(path for path in logs if path.stat().st_size)
    lost.unlink()
    whole = damaged.read_bytes()
    damaged.write_bytes(gzip.compress(b"other") if damaged.suffix == ".gz" else whole[:-1])
    workers.do(2, "finish")
    assert workers.run.status is Status.INFRA_FAILURE
    assert "1 of " in workers.run.reason
    assert "fetched files are neither on this machine nor in the object store" in workers.run.reason
    assert "1 fetched file was changed after the step" in workers.run.reason


@pytest.mark.full
def test_store_that_dies_during_the_run_is_an_infra_failure(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers.resolve(1, monkeypatch)
    workers.do(1, "acquire")
    workers.do(1, StepKind.PREPARE.value)
    away = workers.store.rename(workers.store.with_name("unmounted"))
    printed = workers.do(1, StepKind.TRAIN.value)
    assert "not stored: " in printed
    assert "Status.PASS" in printed, "a training is not repeated because of its logs"
    for kind in ORDER[2:]:
        workers.do(1, kind.value)
    workers.do(1, "finish")
    assert workers.run.status is Status.INFRA_FAILURE
    assert f"the folder of the object store {workers.url} does not exist on this machine" in workers.run.reason
    away.rename(workers.store)

"""Chains in a real Airflow, on nodes of a real Slurm with many slurmd on this machine.

    python benchmarks/scale/slurm.py [--nodes 64] [--chains 200] [--at-once 80] [--seconds 10]
        [--minutes 25] [--end-minutes 8] [--parallelism 8]

Each chain is a DAG of its own with one step on one node: a placeholder that sleeps. --at-once DAG runs are in
flight; with more than --nodes, some wait in Slurm's queue. Databases are on PostgreSQL; Airflow reaches Slurm by
SSH. In the last --end-minutes of --minutes no run is started; runs without a status at the end count as lost.

Prints tables and writes benchmarks/results/scale-slurm.json. The exit code is 1 if a run was lost or did not pass,
a run had more than one allocation, or an allocation, a process or a lease was left.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from makespan import EDITS  # noqa: E402
from tests.support import postgres  # noqa: E402
from tests.support.scheduler import Scheduler, make_catalog  # noqa: E402
from tests.support.slurm import LocalSlurm, SlurmSite, missing_programs  # noqa: E402

from devcluster.airflow.health import free_port  # noqa: E402
from devcluster.airflow.stack import COMPONENTS, starting_airflow  # noqa: E402
from tipcflow.airflow_api import DagRun  # noqa: E402
from tipcflow.airflow_api.node_connections import connection_of  # noqa: E402
from tipcflow.domain import Run, Status  # noqa: E402
from tipcflow.execute.allocation.names import run_of  # noqa: E402
from tipcflow.store import Store  # noqa: E402

CONNECTION = "slurm_login"
SERVER = ("max_connections=200", "shared_buffers=256MB", "fsync=off")
SAMPLE_S = 2.0
# Airflow and all slurmd start at the same time, perhaps on two cores.
READY_S = 900.0
# An iteration of the placeholder sleeps; a chain has ten.
ITERATIONS = 10


class Watch:
    """Samples Slurm's queue while the chains run.

    Attributes:
        jobs: run -> IDs of its jobs.
        running, waiting, busy: per sample, jobs that run and wait, and the share of this machine's CPUs in use.
    """

    def __init__(self, slurm: LocalSlurm) -> None:
        self.jobs: dict[str, set[str]] = {}
        self.running: list[int] = []
        self.waiting: list[int] = []
        self.busy: list[float] = []
        self.errors = 0
        self._slurm = slurm
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        before = _cpu_times()
        while not self._ended.wait(SAMPLE_S):
            try:
                lines = self._slurm.run("squeue", "--states=all", "--noheader", "--format=%i %T %j").splitlines()
            except (AssertionError, OSError):
                self.errors += 1
                continue
            states = Counter()
            for job, state, name in (line.split() for line in lines):
                states[state] += 1
                if run := run_of(name):
                    self.jobs.setdefault(run, set()).add(job)
            self.running.append(states["RUNNING"])
            self.waiting.append(states["PENDING"])
            now = _cpu_times()
            self.busy.append(1 - (now[1] - before[1]) / max(1, now[0] - before[0]))
            before = now


def _cpu_times() -> tuple[int, int]:
    """Return the ticks of all CPUs since the start of the machine: all, and idle ones."""
    fields = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(fields), fields[3] + fields[4]


@contextmanager
def airflow(folder: Path, options: argparse.Namespace, names: tuple[str, ...]) -> Iterator[Scheduler]:
    """A real Airflow with the chains of these names, and a Slurm that it reaches by SSH."""
    with ExitStack() as stack:
        slurm = stack.enter_context(LocalSlurm(folder / "s", names=tuple(_names("n", options.nodes))))
        server = stack.enter_context(postgres.running(SERVER))
        database = server.create().replace("postgresql:", "postgresql+psycopg2:")
        site = SlurmSite(folder, slurm)
        site.database_url = server.create()
        for old, new in (*EDITS, ("norm_train:train.py", f"norm_train:train.py --step-time {_step_s(options)}")):
            site.edit_params(old, new)
        site.configure_policy(lease_wait_s=options.minutes * 60)
        dags = make_catalog(site, names)
        shutil.copy(ROOT / "configs" / "airflow.env", site.configs)
        login = stack.enter_context(slurm.login_node(folder / "login"))
        site.log_in_by(login, connection=CONNECTION)
        node = login.node().model_copy(update={"connection": CONNECTION})
        made = stack.enter_context(
            starting_airflow(
                site.home,
                dags=dags,
                plugins=ROOT / "plugins",
                configs=site.configs,
                env={
                    "TIPCFLOW_DATABASE_URL": site.database_url,
                    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": database,
                    **_executor(stack, folder, database, options),
                },
                report=print,
            )
        )
        components = (*COMPONENTS, "worker") if options.executor == "celery" else COMPONENTS
        login_of = {f"AIRFLOW_CONN_{CONNECTION.upper()}": json.dumps(connection_of(node))}
        made.start(login_of, components=components)
        made.wait_ready(deadline_s=READY_S)
        stack.callback(slurm.cancel_all)  # of lost runs
        scheduler = Scheduler(site, made)
        scheduler.wait_for_dags(*(dag_of(name) for name in names))
        yield scheduler


def _executor(stack: ExitStack, folder: Path, database: str, options: argparse.Namespace) -> dict[str, str]:
    """Start what the executor needs, and return its settings."""
    if options.executor == "local":
        return {"AIRFLOW__CORE__PARALLELISM": str(options.parallelism)}
    port = free_port()
    argv = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]
    redis = stack.enter_context(subprocess.Popen(argv, stdout=subprocess.DEVNULL))
    stack.callback(redis.kill)
    return {
        "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
        "AIRFLOW__CORE__PARALLELISM": str(8 * options.parallelism),
        "AIRFLOW__CELERY__BROKER_URL": f"redis://127.0.0.1:{port}/0",
        "AIRFLOW__CELERY__RESULT_BACKEND": f"db+{database}",
        "AIRFLOW__CELERY__WORKER_CONCURRENCY": str(options.parallelism),
    }


def dag_of(name: str) -> str:
    """Return the DAG of a chain."""
    return f"toy.toy.{name}"


def _names(prefix: str, count: int) -> Iterator[str]:
    return (f"{prefix}{number}" for number in range(1, count + 1))


def _step_s(options: argparse.Namespace) -> str:
    return f"{options.seconds / ITERATIONS:g}"


def measure(scheduler: Scheduler, names: tuple[str, ...], options: argparse.Namespace) -> dict[str, Any]:
    """Run all chains and return the figures."""
    site, begun = scheduler.site, time.monotonic()
    assert isinstance(site, SlurmSite)
    with site.store() as store, Watch(site.slurm) as watch:
        runs: list[DagRun] = []
        waiting, shown = list(names), 0.0
        until = begun + options.minutes * 60
        while (now := time.monotonic()) < until:
            open_runs = without_status(store, runs)
            if now > until - options.end_minutes * 60:
                waiting.clear()
            count = min(len(waiting), options.at_once - len(open_runs))
            runs += [scheduler.start(dag_of(waiting.pop(0))) for _ in range(count)]
            if not waiting and not open_runs and not count:
                break
            if now > shown + 30:
                shown = now
                print(f"{now - begun:5.0f} s: {len(open_runs)} of {len(runs)} runs have no status", flush=True)
            time.sleep(2)
        wall = time.monotonic() - begun
        _await(lambda: not site.left_behind())
        figures = {"started": len(runs), **figures_of(store, runs, watch, wall)}
        ended = [scheduler.now(run) for run in runs]
    states = Counter(run.state.value for run in ended)
    left = {"allocations and processes": len(site.left_behind())}
    shown = {name: value for name, value in vars(options).items() if name != "results"}
    return {
        "options": shown, **figures, "dag_runs": dict(states), "left": left,
        "load": os.getloadavg()[1], "cores": os.cpu_count(),
    }  # fmt: skip


def without_status(store: Store, runs: Iterable[DagRun]) -> list[DagRun]:
    """Return the DAG runs whose runs have not ended."""
    runs = list(runs)
    known = store.runs.known([run.run for run in runs])
    return [run for run in runs if run.run not in known or known[run.run].status is None]


def _await(when: Callable[[], bool], seconds: float = 120.0) -> None:
    deadline = time.monotonic() + seconds
    while not when() and time.monotonic() < deadline:
        time.sleep(1)


def figures_of(store: Store, runs: list[DagRun], watch: Watch, wall: float) -> dict[str, Any]:
    """Return what happened to the runs."""
    known = store.runs.known([run.run for run in runs])
    ended = [run for run in known.values() if run.status is not None]
    trained = {run.id: _training(store, run) for run in ended}
    reasons = Counter(f"{run.status}: {run.reason[:120]}" for run in ended if run.status is not Status.PASS)
    return {
        "wall_s": wall,
        "statuses": dict(Counter(str(run.status.value) for run in ended if run.status)),
        "without_status": len(runs) - len(ended),
        "reasons": dict(reasons),
        "allocations": dict(Counter(len(watch.jobs.get(run.run, ())) for run in runs)),
        "unknown_allocations": len(set(watch.jobs) - {run.run for run in runs}),
        "most_running": max(watch.running, default=0),
        "most_waiting": max(watch.waiting, default=0),
        "cpu_share": statistics.fmean(watch.busy) if watch.busy else 0.0,
        "failed_samples": watch.errors,
        "to_training_s": _spread([at[0] - run.created_at for run in ended if (at := trained[run.id])]),
        "training_s": _spread([at[1] - at[0] for run in ended if (at := trained[run.id])]),
        "to_status_s": _spread(
            [run.ended_at - at[1] for run in ended if run.ended_at and (at := trained[run.id])]
        ),
        "leases": len(store.leases.all()),
    }


def _training(store: Store, run: Run) -> tuple[float, float] | None:
    """Return start and end of the last attempt of the training; None if there was none."""
    attempts = [one for one in store.attempts.of(run.id) if one.step.endswith("/train") and one.ended_at]
    return (attempts[-1].started_at, attempts[-1].ended_at or 0.0) if attempts else None


def _spread(values: list[float]) -> dict[str, float]:
    values = sorted(values)
    if not values:
        return {}
    p95 = values[min(len(values) - 1, int(0.95 * len(values)))]
    return {"median": statistics.median(values), "p95": p95, "max": values[-1]}


def problems_of(figures: dict[str, Any]) -> list[str]:
    """Return a line for each kind of loss."""
    chains = figures["started"]
    several = {count: runs for count, runs in figures["allocations"].items() if count != 1}
    counts = {
        "runs without a status": figures["without_status"],
        "runs that did not pass": chains - figures["without_status"] - figures["statuses"].get("pass", 0),
        "runs with a number of allocations other than 1": sum(several.values()),
        "allocations of unknown runs": figures["unknown_allocations"],
        "allocations and processes left": figures["left"]["allocations and processes"],
        "leases left": figures["leases"],
    }
    return [f"{what}: {count}" for what, count in counts.items() if count]


def show(figures: dict[str, Any]) -> None:
    """Print the figures."""
    for name in ("statuses", "reasons", "allocations", "dag_runs"):
        print(f"{name}: {figures[name]}")
    print(f"{figures['started']} DAG runs, {figures['wall_s']:.0f} s until the last status")
    print(f"most jobs that run: {figures['most_running']}, that wait: {figures['most_waiting']}")
    print(f"CPUs in use: {figures['cpu_share']:.0%}, load {figures['load']:.1f}")
    for name in ("to_training_s", "training_s", "to_status_s"):
        print(f"{name:<14}" + "".join(f"{kind} {value:8.1f}  " for kind, value in figures[name].items()))


def main() -> int:
    """Measure, print the tables, write the JSON; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--nodes", type=int, default=64)
    parser.add_argument("--chains", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=80, help="DAG runs in flight")
    parser.add_argument("--end-minutes", type=float, default=8.0, help="minutes at the end without new runs")
    parser.add_argument("--seconds", type=float, default=10.0, help="duration of each training")
    parser.add_argument("--minutes", type=float, default=25.0, help="time limit of all chains")
    parser.add_argument("--parallelism", type=int, default=8, help="tasks of Airflow that run at the same time")
    parser.add_argument("--executor", choices=("celery", "local"), default="celery")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    if missing := missing_programs():
        print(f"not installed: {', '.join(missing)}")
        return 2
    names = tuple(_names("chain", options.chains))
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tipcflow-scale-"))
        scheduler = stack.enter_context(airflow(Path(folder), options, names))
        figures = measure(scheduler, names, options)
    show(figures)
    options.results.mkdir(exist_ok=True)
    (options.results / "scale-slurm.json").write_text(json.dumps(figures, indent=1) + "\n")
    problems = problems_of(figures)
    print("\n".join(problems) or "nothing was lost")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

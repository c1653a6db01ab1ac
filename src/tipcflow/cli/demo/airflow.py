"""`tipcflow demo` through a real Airflow: nodes and Airflow start together, one DAG run, one verdict, one page."""

import sys
import time
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from tipcflow.domain import InfraError, Run, Status, exit_code

if TYPE_CHECKING:
    from collections.abc import Callable

    from devcluster.airflow.stack import Stack
    from tipcflow.airflow_api import Airflow, DagRun
    from tipcflow.store import Store

_LOOK_EVERY_S = 1.0


class Wishes(NamedTuple):
    """What the command line asks for.

    Attributes:
        params: params file, relative to the suite's root.
        leave: leave when the run has ended, also on a terminal.
        port: of Airflow's UI, when it is free.
    """

    suite: str
    params: str
    mode: str
    seed: int
    leave: bool = False
    port: int = 0
    as_json: bool = False

    @property
    def chain(self) -> str:
        """`<suite>/<model>/<file>`, as the chain's file is stored in configs/chains."""
        path = PurePosixPath(self.params)
        return f"{self.suite}/{path.parent.name}/{path.stem}"


class _Outcome(NamedTuple):
    """The run, its exit code, and whether a signal came."""

    run: str
    code: int
    stopped: bool


def demo_with_airflow(wishes: Wishes) -> int:
    """Everything from nothing to the verdict. Returns: the exit code of the run's status.

    Raises:
        InfraError: nodes or Airflow cannot be had here, or ended; says where to look.
        ConfigError: there is no such chain, or Airflow refuses its params.
        Interrupted: a signal came before there was a run.
    """
    from devcluster.airflow.connections import connections_env
    from devcluster.airflow.stack import beginning_airflow
    from devcluster.install.prepare import prepare
    from devcluster.local_nodes.nodes import local_nodes
    from tipcflow.airflow_api import Airflow
    from tipcflow.cli.demo.command import describe, tell
    from tipcflow.config.settings import settings
    from tipcflow.store import Store

    chosen = settings()
    with beginning_airflow(
        chosen.home,
        dags=shipped("dags", chosen.config_dir),
        plugins=shipped("plugins", chosen.config_dir),
        configs=chosen.config_dir,
        port=wishes.port,
        report=tell,
    ) as stack:
        python = prepare(chosen.home, tell)
        with local_nodes(chosen.home, python=python, report=tell) as nodes:
            tell(describe(nodes.kind))
            stack.start(connections_env(nodes.cluster))
            cluster = nodes.write_cluster_file(nodes.folder / "cluster.yaml")
            stack.wait_ready()
            stays = not wishes.leave and sys.stdin.isatty() and sys.stdout.isatty()
            announce(stack, tell, stays=stays)
            with Store.open() as store, Airflow(stack.url, user=stack.user, password=stack.password) as airflow:
                outcome = _certify(wishes, stack, airflow, store, chosen.home, cluster)
                if stays and not outcome.stopped:
                    stay(stack, outcome.run, tell)
                return outcome.code


def shipped(name: str, configs: Path) -> Path:
    """The folder `dags` or `plugins` that belongs to a folder of configs: beside it, else in this clone.

    Raises:
        InfraError: there is none.
    """
    for root in (configs.parent, Path(__file__).resolve().parents[4]):
        if (root / name).is_dir():
            return root / name
    raise InfraError(
        f"there is no folder {name} beside {configs}", hint="run it in a clone of tipcflow, or with --cli"
    )


def _certify(
    wishes: Wishes, stack: "Stack", airflow: "Airflow", store: "Store", home: Path, cluster: Path
) -> _Outcome:
    from tipcflow.cli.demo.command import tell
    from tipcflow.cli.demo.follow import end_leftovers, follow, wait_for_dag
    from tipcflow.cli.output.live import LiveDisplay
    from tipcflow.cli.run import print_run
    from tipcflow.domain import dag_id_of
    from tipcflow.execute.verdict.conclusion import exit_code_of

    dag_id = dag_id_of(wishes.chain)
    wait_for_dag(airflow, stack, dag_id)
    end_leftovers(airflow, tell)
    airflow.unpause(dag_id)
    conf = {"mode": wishes.mode, "seed": wishes.seed, "cluster": str(cluster)}
    dag_run = airflow.trigger(dag_id, conf, f"demo__{datetime.now(UTC):%Y%m%dT%H%M%S.%f}")
    with LiveDisplay() as display:
        ended = follow(airflow, stack, store, home, dag_run, display)
    run = _run_of(store, airflow, stack, dag_run)
    print_run(store, run, home, as_json=wishes.as_json)
    code = exit_code(Status.CANCELLED) if ended.cancelled else exit_code_of(store, run)
    return _Outcome(run.id, code, ended.stopped)


def _run_of(store: "Store", airflow: "Airflow", stack: "Stack", dag_run: "DagRun") -> Run:
    """Our run that the DAG run was.

    Raises:
        InfraError: there is none, or it has no status: the DAG run broke outside of what we judge.
    """
    from tipcflow.cli.demo.follow import broken_tasks
    from tipcflow.domain import TipcflowError

    try:
        run = store.get_run(dag_run.run)
    except TipcflowError:
        run = None  # no such run, or no such table yet
    if run is not None and run.status is not None:
        return run
    what = f"run {run.id} has no status" if run else f"DAG run {dag_run.run_id} ended before there was a run"
    raise InfraError(
        f"{what}\n{broken_tasks(airflow, stack, dag_run)}",
        hint=f"Airflow's own logs are in {stack.airflow_home}/components",
    )


def announce(stack: "Stack", tell: "Callable[[str], None]", *, stays: bool) -> None:
    """Say that Airflow is up, and where to look while the run goes on."""
    if not stays:
        tell(f"Airflow is up at {stack.url}")
        return
    tell("Airflow is up:")
    for line in where_to_look(stack, secret=sys.stderr.isatty()):
        tell(line)


def stay(stack: "Stack", run: str, tell: "Callable[[str], None]") -> None:
    """Say where the run's page is and keep it up until Ctrl-C.

    Raises:
        InfraError: a part of Airflow ended.
    """
    from devcluster.signals import Interrupted

    tell("\nAirflow stays up until Ctrl-C:")
    for line in [*where_to_look(stack, secret=sys.stderr.isatty()), f"  this run   {page_of(stack, run)}"]:
        tell(line)
    try:
        while True:
            stack.check()
            time.sleep(_LOOK_EVERY_S)
    except Interrupted:
        tell("ending Airflow and the nodes")


def where_to_look(stack: "Stack", *, secret: bool) -> list[str]:
    """Address and login of the UI; the password itself only where no log can keep it."""
    password = f"{stack.password}  (kept in {stack.passwords_file})" if secret else f"in {stack.passwords_file}"
    return [
        f"  address    {stack.url}",
        f"  user       {stack.user}",
        f"  password   {password}",
    ]


def page_of(stack: "Stack", run: str) -> str:
    """The run's page among Airflow's own."""
    return f"{stack.url}/certification/runs/{run}"

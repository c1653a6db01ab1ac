"""`tipcflow demo` with Airflow: starts nodes and Airflow, triggers one DAG run and prints its verdict."""

import sys
import time
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tipcflow.domain import InfraError, Run, Status, exit_code

if TYPE_CHECKING:
    from collections.abc import Callable

    from devcluster.airflow.stack import Stack
    from tipcflow.airflow_api import Airflow, DagRun
    from tipcflow.store import Store

_POLL_S = 1.0


class DemoOptions(NamedTuple):
    """Options of the command line.

    Attributes:
        params: params file, relative to the suite's root.
        leave: exit after the run, even on a terminal.
        port: preferred port of Airflow's UI.
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
        """`<suite>/<model>/<file>`, the path of the chain's file in configs/chains."""
        path = PurePosixPath(self.params)
        return f"{self.suite}/{path.parent.name}/{path.stem}"


class _Outcome(NamedTuple):
    """The run, its exit code, and whether a signal was received."""

    run: str
    code: int
    stopped: bool


def demo_with_airflow(options: DemoOptions) -> int:
    """Set up the cluster, run the chain and print the verdict. Returns: the exit code of the run's status.

    Raises:
        InfraError: nodes or Airflow cannot start, or exited; the message names the logs.
        ConfigError: no such chain, or Airflow rejects its params.
        Interrupted: a signal was received before the run started.
    """
    from devcluster.airflow.stack import starting_airflow
    from devcluster.install.prepare import prepare
    from devcluster.local_nodes.nodes import local_nodes
    from tipcflow.airflow_api import Airflow
    from tipcflow.airflow_api.node_connections import connections_env
    from tipcflow.cli.demo.command import environment_of, print_note
    from tipcflow.config.settings import settings
    from tipcflow.store import Store

    chosen = settings()
    with starting_airflow(
        chosen.home,
        dags=shipped("dags", chosen.config_dir),
        plugins=shipped("plugins", chosen.config_dir),
        configs=chosen.config_dir,
        port=options.port,
        report=print_note,
    ) as stack:
        python = prepare(chosen.home, print_note, kind=environment_of(options.suite, chosen.config_dir))
        with local_nodes(chosen.home, python=python, report=print_note) as nodes:
            print_note(nodes.sentence)
            # Written first: Airflow's form offers this cluster.
            cluster = nodes.write_cluster_file(nodes.folder / "cluster.yaml")
            stack.start(connections_env(nodes.cluster))
            stack.wait_ready()
            stays = not options.leave and sys.stdin.isatty() and sys.stdout.isatty()
            announce(stack, print_note, stays=stays)
            with Store.open() as store, Airflow(stack.url, user=stack.user, password=stack.password) as airflow:
                outcome = _certify(options, stack, airflow, store, chosen.home, cluster)
                if stays and not outcome.stopped:
                    keep_running(stack, outcome.run, print_note)
                return outcome.code


def shipped(name: str, configs: Path) -> Path:
    """The folder `dags` or `plugins` next to a configuration folder, or else of this clone.

    Raises:
        InfraError: no such folder.
    """
    for root in (configs.parent, Path(__file__).resolve().parents[4]):
        if (root / name).is_dir():
            return root / name
    raise InfraError(f"no folder {name} next to {configs}", hint="run it in a clone of tipcflow, or with --cli")


def _certify(
    options: DemoOptions, stack: "Stack", airflow: "Airflow", store: "Store", home: Path, cluster: Path
) -> _Outcome:
    from tipcflow.cli.demo.command import print_note
    from tipcflow.cli.demo.follow import end_leftovers, follow, wait_for_dag
    from tipcflow.cli.output.live import LiveDisplay
    from tipcflow.cli.run import print_run
    from tipcflow.domain import dag_id_of
    from tipcflow.execute.verdict.conclusion import exit_code_of

    dag_id = dag_id_of(options.chain)
    wait_for_dag(airflow, stack, dag_id)
    end_leftovers(airflow, print_note)
    airflow.unpause(dag_id)
    conf = {"mode": options.mode, "seed": options.seed, "cluster": str(cluster)}
    dag_run = airflow.trigger(dag_id, conf, f"demo__{datetime.now(UTC):%Y%m%dT%H%M%S.%f}")
    with LiveDisplay() as display:
        ended = follow(airflow, stack, store, home, dag_run, display)
    run = _run_of(store, airflow, stack, dag_run)
    print_run(store, run, home, as_json=options.as_json)
    code = exit_code(Status.CANCELLED) if ended.cancelled else exit_code_of(store, run)
    return _Outcome(run.id, code, ended.stopped)


def _run_of(store: "Store", airflow: "Airflow", stack: "Stack", dag_run: "DagRun") -> Run:
    """The tipcflow run of a DAG run.

    Raises:
        InfraError: the DAG run failed before its run existed or had a status.
    """
    from tipcflow.cli.demo.follow import broken_tasks
    from tipcflow.domain import TipcflowError

    try:
        run = store.runs.get(dag_run.run)
    except TipcflowError:
        run = None  # no such run, or the table does not exist yet
    if run is not None and run.status is not None:
        return run
    what = f"run {run.id} has no status" if run else f"DAG run {dag_run.run_id} ended before there was a run"
    raise InfraError(
        f"{what}\n{broken_tasks(airflow, stack, dag_run)}",
        hint=f"Airflow's own logs are in {stack.airflow_home}/components",
    )


def announce(stack: "Stack", report: "Callable[[str], None]", *, stays: bool) -> None:
    """Print Airflow's address and login while the run is in progress."""
    if not stays:
        report(f"Airflow is up at {stack.url}")
        return
    report("Airflow is up:")
    for line in login_lines(stack, secret=sys.stderr.isatty()):
        report(line)


def keep_running(stack: "Stack", run: str, report: "Callable[[str], None]") -> None:
    """Print the address of the run's page and keep Airflow up until Ctrl-C.

    Raises:
        InfraError: a component of Airflow exited.
    """
    from devcluster.signals import Interrupted

    report("\nAirflow stays up until Ctrl-C:")
    for line in [*login_lines(stack, secret=sys.stderr.isatty()), f"  this run   {page_of(stack, run)}"]:
        report(line)
    try:
        while True:
            stack.check()
            time.sleep(_POLL_S)
    except Interrupted:
        report("stopping Airflow and the nodes")


class Login(Protocol):
    """Address and login of an Airflow."""

    url: str
    user: str
    password: str
    passwords_file: Path


def login_lines(stack: Login, *, secret: bool) -> list[str]:
    """Address and login of the UI; the password itself only if `secret`."""
    password = f"{stack.password}  (stored in {stack.passwords_file})" if secret else f"in {stack.passwords_file}"
    return [
        f"  address    {stack.url}",
        f"  user       {stack.user}",
        f"  password   {password}",
    ]


def page_of(stack: "Stack", run: str) -> str:
    """The address of the run's page in Airflow's UI."""
    return f"{stack.url}/certification/runs/{run}"

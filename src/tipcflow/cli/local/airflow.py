"""`tipcflow airflow up` and `tipcflow airflow down`: an Airflow for one's own chains."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.cli.local.common import FORCE, interruptible, note, refuse_in_use, refuse_second
from tipcflow.domain import Cluster, TipcflowError

if TYPE_CHECKING:
    from tipcflow.airflow_api import Airflow

app = typer.Typer(help="A local Airflow that runs until `down`.", no_args_is_help=True)
_DAGS_DEADLINE_S = 120.0
_POLL_S = 1.0


@app.command("up")
def up(
    port: Annotated[int, typer.Option(help="Port of Airflow's UI; another one if it is in use.")] = 8080,
) -> None:
    """Start a local Airflow with the chains of configs/chains; it runs until `tipcflow airflow down`."""
    import sys

    from devcluster.keep import control
    from devcluster.keep.record import exclusive, read
    from tipcflow.cli.demo.airflow import login_lines, shipped
    from tipcflow.config.settings import settings
    from tipcflow.store import Store

    chosen = settings()
    with Store.open(chosen.database_url):
        pass  # the Certification pages read the database, which only a first run would create
    folders = {
        "dags": str(shipped("dags", chosen.config_dir)),
        "plugins": str(shipped("plugins", chosen.config_dir)),
        "configs": str(chosen.config_dir),
    }
    with interruptible("Airflow is stopped"), exclusive(chosen.home, "airflow"):
        refuse_second(read(chosen.home, "airflow"), what="the local Airflow is", down="tipcflow airflow down")
        _clean(chosen.home)
        control.start(chosen.home, "airflow", {**folders, "port": port}, note)
    _connect(chosen.home, chosen.config_dir)
    typer.echo("Airflow is up:")
    for line in login_lines(_login(chosen.home), secret=sys.stdout.isatty()):
        typer.echo(line)
    typer.echo("next: tipcflow trigger CHAIN --cluster local --unpause --wait")
    typer.echo("      tipcflow airflow down")


@app.command("down")
def down(force: Annotated[bool, typer.Option("--force", help=FORCE)] = False) -> None:
    """Stop the local Airflow; its database, logs and password stay in TIPCFLOW_HOME."""
    from devcluster.keep import control
    from devcluster.keep.record import exclusive, read
    from tipcflow.config.settings import settings

    home = settings().home
    with interruptible("run it again"), exclusive(home, "airflow"):
        record = read(home, "airflow")
        if record is not None and record.condition == "running" and not force:
            refuse_in_use(_unfinished(home), what="the local Airflow is")
        if record is not None:
            control.stop(home, record)
        _clean(home)
    note("the local Airflow is stopped" if record is not None else "no local Airflow is running")


class _Login:
    """Address and login of the running Airflow."""

    def __init__(self, url: str, user: str, password: str, passwords_file: Path) -> None:
        self.url, self.user, self.password, self.passwords_file = url, user, password, passwords_file


def _login(home: Path) -> _Login:
    from devcluster.airflow.home import airflow_home
    from devcluster.keep.record import read

    record = read(home, "airflow")
    assert record is not None
    made = airflow_home(home / "airflow")
    return _Login(record.facts["url"], record.facts["user"], made.password, made.passwords_file)


def _clean(home: Path) -> None:
    """Remove leftovers of a killed owner.

    Raises:
        InfraError: another process, such as a demo, runs the Airflow of this home.
    """
    from devcluster.airflow.state import Ownership, remove_leftovers
    from devcluster.keep.record import read, remove

    folder = home / "airflow"
    if folder.is_dir() and (folder / "stack.json").exists():
        ownership = Ownership(folder)
        try:
            remove_leftovers(folder, note)
        finally:
            ownership.release()
    if read(home, "airflow") is not None:
        remove(home, "airflow")


def _unfinished(home: Path) -> list[str]:
    from devcluster.keep.connect import running_airflow

    airflow = running_airflow(home)
    if airflow is None:
        return []
    with airflow:
        try:
            return [f"{run.dag_id} {run.run_id}" for run in airflow.unfinished()]
        except TipcflowError:
            return []  # an Airflow that does not respond may be stopped


def _connect(home: Path, config_dir: Path) -> None:
    """Create the connections of all clusters, and wait until Airflow has read its DAG files."""
    from devcluster.keep.connect import connect_nodes, running_airflow

    airflow = running_airflow(home)
    if airflow is None:
        return
    with airflow:
        made, refused = connect_nodes(airflow, _clusters(config_dir))
        for line in refused:
            note(line)
        typer.echo(f"chains: {_dags(airflow)} DAGs; connections: {', '.join(made) or 'none'}")


def _clusters(config_dir: Path) -> list[Cluster]:
    from tipcflow.config.cluster import load_cluster

    clusters = []
    for path in sorted((config_dir / "clusters").glob("*.yaml")):
        try:
            clusters.append(load_cluster(path.stem, config_dir))
        except TipcflowError as error:
            note(f"no connections of a cluster: {error}")
    return clusters


def _dags(airflow: "Airflow") -> int:
    """The number of DAGs, once it no longer grows; import errors are reported."""
    deadline, since = time.monotonic() + _DAGS_DEADLINE_S, time.time() - _DAGS_DEADLINE_S
    before = 0
    while time.monotonic() < deadline:
        count = len(airflow.dags())
        if count and count == before:
            break
        if not count and (errors := airflow.import_errors(since=since)):
            for file, text in sorted(errors.items()):
                note(f"Airflow cannot import {file}: {text.strip().splitlines()[-1]}")
            break
        before = count
        time.sleep(_POLL_S)
    return before

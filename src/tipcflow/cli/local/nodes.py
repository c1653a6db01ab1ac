"""`tipcflow local up` and `tipcflow local down`: local nodes for one's own chains."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.cli.local.common import FORCE, interruptible, note, refuse_in_use, refuse_second, runs_on
from tipcflow.domain import ConfigError

if TYPE_CHECKING:
    from devcluster.local_nodes.kinds import Kind
    from tipcflow.config.suite import Suite

app = typer.Typer(help="Local nodes that run until `down`.", no_args_is_help=True)
_NAMES = "abcdefghijklmnopqrstuvwxyz"
_KINDS = ("namespaces", "loopback")


@app.command("up")
def up(
    count: Annotated[int, typer.Option("--nodes", "-n", min=1, max=len(_NAMES), help="Number of nodes.")] = 2,
    suite: Annotated[str, typer.Option("--suite", "-s", help="Suite whose commands to print.")] = "",
    slots: Annotated[
        int, typer.Option(min=1, max=1024, help="CPU processes, or GPUs, of one run on each node.")
    ] = 2,
    device: Annotated[
        str, typer.Option(metavar="cpu|gpu", help="Device of the slots. All nodes share the GPUs of this machine.")
    ] = "cpu",
    kind: Annotated[
        str,
        typer.Option(
            metavar="namespaces|loopback",
            help="Kind of nodes. Default: namespaces where possible. Only loopback nodes reach the internet.",
        ),
    ] = "",
    python: Annotated[
        Path | None,
        typer.Option(
            help="Interpreter of the nodes' environment. Default: CPU PaddlePaddle, installed if missing."
        ),
    ] = None,
) -> None:
    """Start local SSH nodes that run until `tipcflow local down`, and write the cluster `local`."""
    from devcluster.keep import control
    from devcluster.keep.record import exclusive, read
    from tipcflow.config.settings import settings

    chosen = settings()
    loaded = _suite(suite, chosen.config_dir, python)
    _check_options(kind, device, python)
    file = _cluster_file(chosen.config_dir)
    with interruptible("the nodes are removed"), exclusive(chosen.home, "nodes"):
        refuse_second(read(chosen.home, "nodes"), what="local nodes are", down="tipcflow local down")
        _clean(chosen.home, file)
        config = {
            "names": list(_NAMES[:count]),
            "slots": slots,
            "device": device,
            "python": str(_interpreter(chosen.home, python)),
            "kind": _as_kind(kind),
            "cluster_file": str(file),
        }
        record = control.start(chosen.home, "nodes", config, note)
    typer.echo(record.facts["sentence"])
    typer.echo(f"cluster local: {file}")
    _connect(chosen.home, file)
    for line in _next_commands(loaded):
        typer.echo(line)


@app.command("down")
def down(force: Annotated[bool, typer.Option("--force", help=FORCE)] = False) -> None:
    """Stop the local nodes and remove everything that `up` created, including leftovers of killed commands."""
    from devcluster.keep import control
    from devcluster.keep.record import exclusive, read
    from tipcflow.config.settings import settings

    chosen = settings()
    file = chosen.config_dir / "clusters" / "local.yaml"
    with interruptible("run it again"), exclusive(chosen.home, "nodes"):
        record = read(chosen.home, "nodes")
        addresses = [host for host, _ in record.facts.get("nodes", {}).values()] if record else []
        if record is not None and record.alive and not force:
            refuse_in_use(runs_on(addresses, chosen.database_url), what="the local nodes are")
        ids = _connection_ids(file)
        if record is not None:
            control.stop(chosen.home, record)
        removed = _clean(chosen.home, file)
        _disconnect(chosen.home, ids)
    if record is not None:
        note("local nodes are stopped")
    elif not removed:
        note("no local nodes are running")


def _check_options(kind: str, device: str, python: Path | None) -> None:
    if kind and kind not in _KINDS:
        raise ConfigError("unknown kind", key="--kind", found=kind, expected=" or ".join(_KINDS))
    if device not in ("cpu", "gpu"):
        raise ConfigError("unknown device", key="--device", found=device, expected="cpu or gpu")
    if device == "gpu" and python is None:
        raise ConfigError(
            "the local nodes' own environment has PaddlePaddle for CPUs",
            key="--device",
            found=device,
            expected="--python with the interpreter of an environment for GPUs",
        )
    if python is not None and not python.is_file():
        raise ConfigError("no such interpreter", key="--python", found=str(python), expected="an executable file")


def _as_kind(kind: str) -> "Kind | None":
    return "namespaces" if kind == "namespaces" else "loopback" if kind == "loopback" else None


def _suite(name: str, config_dir: Path, python: Path | None) -> "Suite | None":
    from tipcflow.config.suite import load_suite

    if not name:
        return None
    suite = load_suite(name, config_dir)
    if suite.framework == "torch" and python is None:
        raise ConfigError(
            "the suite imports torch, but the local nodes' own environment has PaddlePaddle",
            key="--suite",
            found=name,
            hint="pass an interpreter that has torch with --python",
        )
    return suite


def _cluster_file(config_dir: Path) -> Path:
    from devcluster.keep.nodes import is_ours

    path = config_dir / "clusters" / "local.yaml"
    if not is_ours(path):
        raise ConfigError(
            "this cluster was not written by `tipcflow local up`, so it is kept",
            file=str(path),
            hint="rename it, or set TIPCFLOW_CONFIG_DIR to another folder",
        )
    return path


def _interpreter(home: Path, python: Path | None) -> Path:
    from devcluster.install import packages
    from devcluster.install.prepare import prepare

    if python is None:
        return prepare(home, note)
    packages.ensure(packages.for_local_nodes(), note)
    return python.absolute()


def _clean(home: Path, file: Path) -> int:
    """Remove leftovers of killed owners and an outdated cluster file. Returns: the number of removed sets."""
    from devcluster.keep.nodes import is_ours
    from devcluster.keep.record import read, remove
    from devcluster.local_nodes.nodes import remove_leftovers

    removed = remove_leftovers(home, note)
    if read(home, "nodes") is not None:
        remove(home, "nodes")
    if file.exists() and is_ours(file):
        file.unlink()
    return removed


def _connection_ids(file: Path) -> list[str]:
    from devcluster.keep.nodes import is_ours
    from tipcflow.config.cluster import load_cluster
    from tipcflow.domain import TipcflowError

    try:
        return [node.connection for node in load_cluster(str(file), file.parent).nodes] if is_ours(file) else []
    except TipcflowError:
        return []


def _connect(home: Path, file: Path) -> None:
    from devcluster.keep.connect import connect_nodes, running_airflow
    from tipcflow.config.cluster import load_cluster

    airflow = running_airflow(home)
    if airflow is not None:
        with airflow:
            made, _ = connect_nodes(airflow, [load_cluster(str(file), file.parent)])
        typer.echo(f"connections in the local Airflow: {', '.join(made)}")


def _disconnect(home: Path, ids: list[str]) -> None:
    from devcluster.keep.connect import disconnect_nodes, running_airflow

    airflow = running_airflow(home) if ids else None
    if airflow is not None:
        with airflow:
            disconnect_nodes(airflow, ids)


def _next_commands(suite: "Suite | None") -> list[str]:
    """Commands for the user's own chains on the nodes."""
    name, params = "SUITE", "PARAMS"
    if suite is not None:
        name = suite.name
        root = Path(suite.folder, suite.subfolder)
        files = sorted(path for pattern in suite.params for path in root.glob(pattern)) if suite.folder else []
        # A fleet file uses all nodes; files without a training have other modes.
        files.sort(key=lambda path: ("fleet" not in path.name, "train" not in path.name))
        params = files[0].relative_to(root).as_posix() if files else params
    return [
        f"next: tipcflow plan {params} --suite {name} --cluster local",
        f"      tipcflow run  {params} --suite {name} --cluster local --mode lite_train_lite_infer",
        "      tipcflow local down",
    ]

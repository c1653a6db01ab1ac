"""`tipcflow demo`: certifies a chain of a shipped suite on two local nodes."""

from pathlib import Path
from typing import Annotated

import typer

from tipcflow.domain import ConfigError, Status, exit_code
from tipcflow.domain.numbers.seed import LARGEST_SEED, SMALLEST_SEED

# Suite -> params file of its demo.
CHAINS = {
    "mobilenet_v3_small": (
        "test_tipc/configs/mobilenet_v3_small/train_linux_gpu_fleet_normal_infer_python_linux_gpu_cpu.txt"
    ),
    "pytorch_multinode": "test_tipc/configs/mnist/train_init_method.txt",
    "parameter_server": "test_tipc/configs/sparse_embedding/train_ps.txt",
}
SUITE = next(iter(CHAINS))
PARAMS = CHAINS[SUITE]


def demo(
    suite: Annotated[str, typer.Option("--suite", "-s", help=f"Shipped suite: {', '.join(CHAINS)}.")] = SUITE,
    seed: Annotated[
        int,
        typer.Option(
            min=SMALLEST_SEED, max=LARGEST_SEED, help="Training seed; equal seeds must give equal losses."
        ),
    ] = 0,
    params: Annotated[str | None, typer.Option(help="Params file of the suite. Default: its fleet chain.")] = None,
    mode: Annotated[str, typer.Option("--mode", "-m", help="TIPC mode.")] = "lite_train_lite_infer",
    home: Annotated[
        Path | None, typer.Option(help="Folder for environments, runs and the database; overrides TIPCFLOW_HOME.")
    ] = None,
    cli: Annotated[bool, typer.Option("--cli", help="Run the chain in this process, without Airflow.")] = False,
    leave: Annotated[bool, typer.Option("--exit", help="Exit after the run; default without a terminal.")] = False,
    port: Annotated[int, typer.Option(help="Port of Airflow's UI; another one if it is in use.")] = 8080,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON to stdout.")] = False,
    history: Annotated[
        bool, typer.Option("--history", help="Only fill a database with a year of generated runs of 60 chains.")
    ] = False,
    database: Annotated[
        str, typer.Option(help="Database for --history; default: sample-history.db in the home.", metavar="URL")
    ] = "",
) -> None:
    """Start two local SSH nodes and an Airflow, then certify a real model: training, export, inference."""
    import os

    from devcluster.install.environment import check_environment
    from devcluster.signals import Interrupted, interrupt_guard
    from tipcflow.cli.demo.airflow import DemoOptions, demo_with_airflow
    from tipcflow.cli.demo.history import generate_history, refuse_other_options
    from tipcflow.config.settings import settings

    if suite not in CHAINS:
        raise ConfigError("this suite has no demo", key="--suite", found=suite, expected=" or ".join(CHAINS))
    params = params or CHAINS[suite]
    if home is not None:
        os.environ["TIPCFLOW_HOME"] = str(home)
    refuse_other_options(database, history=history)
    if history:
        generate_history(settings().home, database)
        return
    chosen = settings()
    check_environment(chosen.home, environment_of(suite, chosen.config_dir))
    try:
        with interrupt_guard.installed():
            if cli:
                code = _without_airflow(suite, seed, params, mode, as_json=as_json)
            else:
                code = demo_with_airflow(
                    DemoOptions(suite, params, mode, seed, leave=leave, port=port, as_json=as_json)
                )
    except Interrupted as stop:
        typer.echo(f"{stop}; the nodes are stopped", err=True)
        if not as_json:
            typer.echo(Status.CANCELLED.value)
        code = exit_code(Status.CANCELLED)
    raise typer.Exit(code)


def _without_airflow(suite: str, seed: int, params: str, mode: str, *, as_json: bool) -> int:
    from devcluster.install.prepare import prepare
    from devcluster.local_nodes.nodes import local_nodes
    from tipcflow.cli.run import certify
    from tipcflow.config.settings import settings
    from tipcflow.execute.request import RunRequest
    from tipcflow.execute.run.driver import owner_of_this_process

    chosen = settings()
    python = prepare(chosen.home, print_note, kind=environment_of(suite, chosen.config_dir))
    with local_nodes(chosen.home, python=python, report=print_note) as nodes:
        print_note(nodes.sentence)
        request = RunRequest(
            params=params,
            suite=suite,
            mode=mode,
            cluster=str(nodes.write_cluster_file(nodes.folder / "cluster.yaml")),
            config_dir=chosen.config_dir,
            seed=seed,
            trigger="demo",
            owner=owner_of_this_process(),
            command=("tipcflow", "demo", "--cli"),
        )
        return certify(request, as_json=as_json)


def environment_of(suite: str, configs: Path) -> str:
    """The kind of the nodes' Python environment that a suite needs."""
    from tipcflow.config.suite import load_suite
    from tipcflow.domain import Launch

    chosen = load_suite(suite, configs)
    if chosen.launch is Launch.PS:
        return "node-ps"
    return "node-torch" if chosen.framework == "torch" else "node-cpu"


def print_note(line: str) -> None:
    """Print to stderr; stdout is for the verdict."""
    typer.echo(line, err=True)

"""`tipcflow demo`: certifies the sample chain on two local nodes."""

from pathlib import Path
from typing import Annotated

import typer

from tipcflow.domain import Status, exit_code

SUITE = "mobilenet_v3_small"
PARAMS = "test_tipc/configs/mobilenet_v3_small/train_linux_gpu_fleet_normal_infer_python_linux_gpu_cpu.txt"


def demo(
    seed: Annotated[int, typer.Option(help="Training seed; equal seeds must give equal losses.")] = 0,
    params: Annotated[str, typer.Option(help="Params file of the sample suite.")] = PARAMS,
    mode: Annotated[str, typer.Option("--mode", "-m", help="TIPC mode.")] = "lite_train_lite_infer",
    home: Annotated[
        Path | None, typer.Option(help="Folder for environments, runs and the database; overrides TIPCFLOW_HOME.")
    ] = None,
    cli: Annotated[bool, typer.Option("--cli", help="Run the chain in this process, without Airflow.")] = False,
    leave: Annotated[bool, typer.Option("--exit", help="Exit after the run; default without a terminal.")] = False,
    port: Annotated[int, typer.Option(help="Port of Airflow's UI; another one if it is in use.")] = 8080,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON to stdout.")] = False,
    history: Annotated[
        bool, typer.Option("--history", help="Only fill a database with a generated year of runs of 60 chains.")
    ] = False,
    database: Annotated[
        str, typer.Option(help="Database for --history; default: sample-history.db in the home.", metavar="URL")
    ] = "",
) -> None:
    """Start two local SSH nodes and an Airflow, then train, export, infer and certify a real model."""
    import os

    from devcluster.signals import Interrupted, interrupt_guard
    from tipcflow.cli.demo.airflow import DemoOptions, demo_with_airflow
    from tipcflow.cli.demo.history import generate_history, refuse_other_options
    from tipcflow.config.settings import settings

    if home is not None:
        os.environ["TIPCFLOW_HOME"] = str(home)
    refuse_other_options(database, history=history)
    if history:
        generate_history(settings().home, database)
        return
    try:
        with interrupt_guard.installed():
            if cli:
                code = _without_airflow(seed, params, mode, as_json=as_json)
            else:
                code = demo_with_airflow(
                    DemoOptions(SUITE, params, mode, seed, leave=leave, port=port, as_json=as_json)
                )
    except Interrupted as stop:
        typer.echo(f"{stop}; the nodes are stopped", err=True)
        if not as_json:
            typer.echo(Status.CANCELLED.value)
        code = exit_code(Status.CANCELLED)
    raise typer.Exit(code)


def _without_airflow(seed: int, params: str, mode: str, *, as_json: bool) -> int:
    from devcluster.install.prepare import prepare
    from devcluster.local_nodes.nodes import local_nodes
    from tipcflow.cli.run import certify
    from tipcflow.config.settings import settings
    from tipcflow.execute.request import RunRequest
    from tipcflow.execute.run.driver import owner_of_this_process

    chosen = settings()
    python = prepare(chosen.home, print_note)
    with local_nodes(chosen.home, python=python, report=print_note) as nodes:
        print_note(nodes.sentence)
        request = RunRequest(
            params=params,
            suite=SUITE,
            mode=mode,
            cluster=str(nodes.write_cluster_file(nodes.folder / "cluster.yaml")),
            config_dir=chosen.config_dir,
            seed=seed,
            trigger="demo",
            owner=owner_of_this_process(),
            command=("tipcflow", "demo", "--cli"),
        )
        return certify(request, as_json=as_json)


def print_note(line: str) -> None:
    """Print to stderr; stdout is for the verdict."""
    typer.echo(line, err=True)

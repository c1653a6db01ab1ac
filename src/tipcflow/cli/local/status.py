"""`tipcflow status`: local nodes and Airflows of this user: what runs, where, since when, and what is stale."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.cli.output.records import AsCsv, print_records, refuse_both
from tipcflow.domain import Frozen, Status, exit_code

if TYPE_CHECKING:
    from devcluster.keep.record import Record

_ANSWER_S = 2.0
_DOWN = {"nodes": "tipcflow local down", "airflow": "tipcflow airflow down"}


class Service(Frozen):
    """One service of this machine.

    Attributes:
        what: `local nodes`, `Airflow`, or the name of a file.
        condition: starting, running, failed (ended by itself) or stale (leftovers of a killed process).
        where: addresses or folder.
        since: Unix time of the start, None if unknown.
        note: owner, problems and the remedy.
        has_problem: whether a service that is starting or running does not work.
    """

    what: str
    condition: str
    where: str
    since: float | None = None
    note: str = ""
    has_problem: bool = False

    @property
    def healthy(self) -> bool:
        """Whether nothing has to be done."""
        return self.condition in ("starting", "running") and not self.has_problem


def status(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False, as_csv: AsCsv = False
) -> None:
    """Show local nodes and the local Airflow: what runs, where, since when; exit code 5 if something is stale."""
    from tipcflow.cli.output.output import columns, echo_lines, print_json, terminal_width
    from tipcflow.config.settings import settings
    from tipcflow.domain.numbers.units import utc

    refuse_both(as_json=as_json, as_csv=as_csv)
    chosen = settings()
    all_services = list(services(chosen.home, chosen.config_dir))
    if as_json:
        print_json({"home": str(chosen.home), "services": [service.model_dump() for service in all_services]})
    elif as_csv:
        print_records([service.model_dump() for service in all_services])
    elif not all_services:
        typer.echo(f"nothing is running (TIPCFLOW_HOME is {chosen.home})")
    else:
        rows = [
            (
                service.what,
                service.condition,
                utc(service.since) or "unknown",
                "; ".join(filter(None, (service.where, service.note))),
            )
            for service in all_services
        ]
        echo_lines(columns(("WHAT", "IS", "SINCE (UTC)", "WHERE"), rows, width=terminal_width()))
    raise typer.Exit(0 if all(service.healthy for service in all_services) else exit_code(Status.INFRA_FAILURE))


def services(home: Path, config_dir: Path) -> Iterator[Service]:
    """All local nodes and Airflows of this user, first those of `up`."""
    from devcluster.keep.nodes import HEAD
    from devcluster.keep.record import read

    nodes, airflow = read(home, "nodes"), read(home, "airflow")
    if nodes is not None:
        yield _kept("local nodes", nodes, _nodes_where(nodes), _nodes_problem(nodes))
    if airflow is not None:
        yield _kept("Airflow", airflow, str(airflow.facts.get("url", "")), _airflow_problem(airflow))
    yield from _other_nodes(home, nodes)
    yield from _other_airflow(home, airflow)
    file = config_dir / "clusters" / "local.yaml"
    if nodes is None and file.is_file() and file.read_text(errors="replace").startswith(HEAD):
        yield Service(
            what="cluster local",
            condition="stale",
            where=str(file),
            note="nodes no longer exist; run `tipcflow local down`",
        )


def _kept(what: str, record: "Record", where: str, problem: str) -> Service:
    condition = record.condition
    if condition == "failed":
        note = f"{record.failed}: `{_DOWN[record.name]}`"
    elif condition == "stale":
        note = f"its process {record.pid} was killed, or the machine was restarted: `{_DOWN[record.name]}`"
    else:
        note = f"problem: {problem}" if problem else f"process {record.pid}"
    return Service(
        what=what, condition=condition, where=where, since=record.since, note=note, has_problem=bool(problem)
    )


def _nodes_where(record: "Record") -> str:
    nodes = record.facts.get("nodes", {})
    return ", ".join(f"{name} {host}:{port}" for name, (host, port) in nodes.items())


def _nodes_problem(record: "Record") -> str:
    from devcluster.local_nodes.sshd import is_listening

    silent = [
        name
        for name, (host, port) in record.facts.get("nodes", {}).items()
        if not is_listening(host, port, timeout_s=_ANSWER_S)
    ]
    if record.condition == "running" and silent:
        return f"sshd of {', '.join(silent)} does not respond"
    file = Path(record.facts.get("cluster_file", "/"))
    return f"{file} is missing" if record.condition == "running" and not file.is_file() else ""


def _airflow_problem(record: "Record") -> str:
    from devcluster.airflow.health import unhealthy

    if record.condition != "running":
        return ""
    names = ("api-server", "scheduler", "dag-processor", "triggerer")
    missing = unhealthy(record.facts["url"], names, 0.0, timeout_s=_ANSWER_S)
    return f"{', '.join(missing)} not healthy; logs in {record.facts['logs']}" if missing else ""


def _other_nodes(home: Path, record: "Record | None") -> Iterator[Service]:
    """Nodes of demos and tests of this user, and leftovers of killed ones."""
    from devcluster.local_nodes import state
    from devcluster.local_nodes.processes import started_at

    with state.locked():
        groups = [(nodes, state.has_owner(nodes)) for nodes in state.known(home)]
    for nodes, alive in groups:
        if record is not None and tuple(nodes.owner) == (record.pid, record.started):
            continue
        yield Service(
            what="local nodes",
            condition="running" if alive else "stale",
            where=f"{', '.join(nodes.processes) or 'no processes'} in {nodes.folder}",
            since=started_at(nodes.owner[0]) if alive else None,
            note=_owner(nodes.owner[0]) if alive else "their owner was killed: `tipcflow local down` removes them",
        )


def _other_airflow(home: Path, record: "Record | None") -> Iterator[Service]:
    """The Airflow of a demo in this home, or its leftovers."""
    from devcluster.airflow.state import read_state
    from devcluster.local_nodes.processes import start_time, started_at

    state = read_state(home / "airflow")
    if state is None or (record is not None and tuple(state.owner) == (record.pid, record.started)):
        return
    pid, born = state.owner
    alive = start_time(pid) == born
    yield Service(
        what="Airflow",
        condition="running" if alive else "stale",
        where=state.url,
        since=started_at(pid) if alive else None,
        note=_owner(pid) if alive else "its owner was killed: `tipcflow airflow down` removes it",
    )


def _owner(pid: int) -> str:
    try:
        arguments = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        arguments = []
    command = " ".join([os.path.basename(arguments[0]), *arguments[1:]]).strip() if arguments else ""  # noqa: PTH119
    return f"process {pid} ({command[:60]})" if command else f"process {pid}"

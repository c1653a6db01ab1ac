"""The runs of a scaling chain: one per topology, checked before the first one starts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import typer

from tipcflow.domain import Cluster, ConfigError, Status
from tipcflow.domain.run.names import DeviceWord
from tipcflow.domain.run.scaling import ScaledTopology, ScalingDocument
from tipcflow.parse.scaling.plausibility import doubts, spread_of
from tipcflow.parse.scaling.scaling import Scaled, Speed, Topology, scaled
from tipcflow.parse.scaling.speeds import Window
from tipcflow.parse.scaling.topologies import DEFAULT, batch_per_device, in_order, misfit, read_topology

if TYPE_CHECKING:
    from tipcflow.execute.request import RunRequest

# Statuses of runs whose trainings worked: only their speeds count.
_WORKS = frozenset({Status.PASS, Status.IMPROVEMENT, Status.REGRESSION, Status.UNCONFIRMED})


@dataclass(frozen=True)
class Series:
    """What a user wants to measure.

    Attributes:
        request: of every run, without its case.
        topologies: names; none for the usual ones that the cluster has.
        per_device, in_total: batch size per device, or of all devices; the other one is 0.
        rule, skip, take: how the speed of a log is computed.
    """

    request: "RunRequest"
    topologies: tuple[str, ...]
    per_device: int
    in_total: int
    precision: str
    rule: str
    skip: int
    take: int


@dataclass(frozen=True)
class Measured:
    """The result: speeds per topology, what is stored, and notes for the user."""

    rows: list[Scaled]
    document: ScalingDocument
    notes: list[str]


@dataclass(frozen=True)
class _Case:
    """A topology that is measured; `why` is the reason if it is not."""

    topology: Topology
    batch: int
    request: "RunRequest"
    why: str = ""


def measured(series: Series) -> Measured:
    """Run all topologies of a series and store the result with the last run.

    Raises:
        ConfigError: an input is invalid; nothing was started.
    """
    from tipcflow.config.settings import settings
    from tipcflow.execute.run import status_spool as spool
    from tipcflow.store import Store

    cases = _checked(series)
    home = settings().home
    entries: list[ScaledTopology] = []
    speeds: list[Speed] = []
    notes: list[str] = []
    with Store.open() as store:
        spool.apply(home, store)
        stopped = ""
        for case in cases:
            entry = ScaledTopology(topology=case.topology.name, batch_size_per_device=case.batch)
            if why := case.why or stopped:
                entries.append(entry.model_copy(update={"reason": why}))
                continue
            typer.echo(f"{case.topology.name}: batch size {case.batch} per device", err=True)
            entry = _run(case, entry, store, home)
            if entry.status is Status.CANCELLED:
                stopped = "stopped by a user"
            entries.append(_with_speeds(entry, series, speeds, notes) if entry.status in _WORKS else entry)
        rows = _rows(speeds, entries, notes)
        notes = list(dict.fromkeys([*notes, *doubts(rows)]))
        kept = ScalingDocument(
            precision=series.precision,
            repeats=series.request.repeats,
            rule=series.rule,
            skip=series.skip,
            take=series.take,
            topologies=tuple(_with_results(entry, rows) for entry in entries),
            notes=tuple(notes),
        )
        if last := next((entry.run for entry in reversed(entries) if entry.run), ""):
            store.documents.put(last, kept)
    return Measured(rows, kept, notes)


def _run(case: _Case, entry: ScaledTopology, store: Any, home: Any) -> ScaledTopology:
    from tipcflow.cli.run import executed

    with executed(case.request, store, home) as run:
        pass
    status = run.status or Status.INFRA_FAILURE
    reason = "" if status in (Status.PASS, Status.IMPROVEMENT) else run.reason
    return entry.model_copy(update={"run": run.id, "status": status, "reason": reason})


def _with_speeds(entry: ScaledTopology, series: Series, speeds: list[Speed], notes: list[str]) -> ScaledTopology:
    """Add the speeds of a run; a passed run without a speed gets the reason."""
    from tipcflow.cli.scaling.runs import run_speeds

    window = Window(series.skip, series.take)
    try:
        of_run = run_speeds(entry.run, rule=series.rule, batch=entry.batch_size_per_device, window=window)
    except ConfigError as error:
        return entry if entry.reason else entry.model_copy(update={"reason": error.message})
    speeds += of_run.speeds
    notes += of_run.notes
    return entry


def _with_results(entry: ScaledTopology, rows: Sequence[Scaled]) -> ScaledTopology:
    """Return the topology with its figures, for pages and comparisons; of several models, those of the first."""
    row = next((row for row in rows if row.topology == entry.topology), None)
    if row is None:
        return entry
    figures = row.model_dump(
        include={"devices", "repeats", "average_speed", "median_speed", "speedup", "efficiency"}
    )
    return entry.model_copy(update={**figures, "spread": round(spread_of(row), 4)})


def _rows(speeds: Sequence[Speed], entries: Sequence[ScaledTopology], notes: list[str]) -> list[Scaled]:
    """Return the table, with the batch size of each topology."""
    batches = {entry.topology: entry.batch_size_per_device for entry in entries}
    rows = scaled(speeds, 0, from_smallest=True)
    smallest = next((row for row in rows if row.speedup == 1), None)
    if smallest is not None and smallest.devices > 1:
        notes.append(f"speed-up and efficiency are relative to {smallest.topology}")
    return [row.model_copy(update={"batch_size_per_device": batches[row.topology]}) for row in rows]


def _checked(series: Series) -> list[_Case]:
    """Return all topologies in the order of their runs; every plan that will run can be made.

    Raises:
        ConfigError: unknown name, topology, precision or case; a cluster without the framework or a named
            topology; too few iterations.
    """
    from tipcflow.cli.run import check_names
    from tipcflow.config.cluster import load_cluster, require_framework
    from tipcflow.config.settings import settings
    from tipcflow.config.suite import load_suite
    from tipcflow.execute.resolve.planning import make_plan
    from tipcflow.execute.source.snapshot import take_snapshot

    request = series.request
    check_names(request)
    topologies = in_order(read_topology(name) for name in series.topologies or DEFAULT)
    suite = load_suite(request.suite, request.config_dir)
    cluster = load_cluster(request.cluster, request.config_dir)
    require_framework(suite, cluster)
    snapshot = take_snapshot(suite, request.params, request.suite_ref, cache=settings().home / "suites")
    _check_section(snapshot.params_text, snapshot.params_file, series)
    cases = [_case(topology, cluster, series) for topology in topologies]
    for case in cases:
        if not case.why:
            make_plan(case.request, suite, cluster, snapshot, run="plan")
    return cases


def _case(topology: Topology, cluster: Cluster, series: Series) -> _Case:
    """Return the case of a topology, as the suites' benchmark scripts name it: `N2C16` is 2 nodes, 16 devices."""
    why = misfit(topology, cluster)
    if why and series.topologies:
        raise ConfigError(
            f"the cluster does not have {topology.name}",
            key="--topology",
            found=why,
            expected="topologies of the cluster, or none for all that it has",
        )
    if why:
        return _Case(topology, series.per_device, series.request, why)
    batch = batch_per_device(topology, per_device=series.per_device, in_total=series.in_total)
    word = f"dynamic_bs{batch}_{series.precision}_DP_{DeviceWord(topology.nodes, topology.devices)}"
    return _Case(topology, batch, replace(series.request, mode=f"{series.request.mode}:{word}"))


def _check_section(text: str, file: str, series: Series) -> None:
    """Check what the benchmark section of a params file must have.

    Raises:
        ConfigError: no section, another precision, or fewer iterations than the speed is computed from.
    """
    from tipcflow.params.lines import read_lines
    from tipcflow.params.sections import benchmark_section

    section = benchmark_section(read_lines(text), file=file)
    if section is None:
        raise ConfigError(
            "no trainings to measure",
            file=file,
            key="train_benchmark_params",
            expected="a params file with this section, for example that of mobilenet_v3_small_benchmark",
        )
    precisions = ["fp32" if name == "null" else name for name in section.fp]
    if series.precision not in precisions:
        raise ConfigError(
            "unknown precision",
            key="--precision",
            found=series.precision,
            expected=f"one of {', '.join(precisions)} (fp_items of {file})",
        )
    if section.iters and series.skip + series.take > section.iters:
        raise ConfigError(
            f"the training has {section.iters} iterations",
            key="--skip, --take",
            found=f"{series.skip} + {series.take}",
            expected=f"at most {section.iters} together (max-iters of {file})",
        )

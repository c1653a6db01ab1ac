"""The runs of a scaling chain: one per topology, checked before the first one starts."""

from dataclasses import dataclass, replace

from tipcflow.config.cluster import load_cluster, require_framework
from tipcflow.config.suite import load_suite
from tipcflow.domain import Cluster, ConfigError
from tipcflow.domain.errors import KEYS_SEPARATOR
from tipcflow.domain.run.names import DeviceWord
from tipcflow.execute.request import RunRequest
from tipcflow.parse.scaling.scaling import Topology
from tipcflow.parse.scaling.topologies import DEFAULT, batch_per_device, in_order, misfit, read_topology

MODE = "benchmark_train"


@dataclass(frozen=True)
class Series:
    """What a user wants to measure.

    Attributes:
        request: of every run, without its case.
        topologies: names; none for the usual ones that the cluster has.
        per_device, in_total: batch size per device, or of all devices; the other one is 0.
        rule, skip, take: how the speed of a log is computed.
    """

    request: RunRequest
    topologies: tuple[str, ...]
    per_device: int
    in_total: int
    precision: str
    rule: str
    skip: int
    take: int


@dataclass(frozen=True)
class Case:
    """A topology that is measured; `why` is the reason if it is not."""

    topology: Topology
    batch: int
    request: RunRequest
    why: str = ""


def checked_cases(series: Series) -> list[Case]:
    """Return all topologies in the order of their runs; every plan that will run can be made.

    Raises:
        ConfigError: unknown name, topology, precision or case; a cluster without the framework or a named
            topology; too few iterations.
    """
    from tipcflow.config.settings import settings
    from tipcflow.execute.resolve.planning import make_plan
    from tipcflow.execute.source.snapshot import take_snapshot

    if bool(series.per_device) == bool(series.in_total):
        raise ConfigError(
            "exactly one of the two is required",
            key=KEYS_SEPARATOR.join(("--batch-size-per-device", "--global-batch-size")),
            found="both" if series.per_device else "neither",
            expected="a batch size, for example 128 per device",
        )
    request = series.request
    topologies = in_order(read_topology(name) for name in series.topologies or DEFAULT)
    suite = load_suite(request.suite, request.config_dir)
    cluster = load_cluster(request.cluster, request.config_dir)
    require_framework(suite, cluster)
    cache = settings().home / "suites"
    snapshot = take_snapshot(
        suite, request.params, request.suite_ref, cache=cache, only_inside=request.only_inside
    )
    _check_section(snapshot.params_text, snapshot.params_file, series)
    cases = [_case(topology, cluster, series) for topology in topologies]
    for case in cases:
        if not case.why:
            make_plan(case.request, suite, cluster, snapshot, run="plan")
    return cases


def _case(topology: Topology, cluster: Cluster, series: Series) -> Case:
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
        return Case(topology, series.per_device, series.request, why)
    batch = batch_per_device(topology, per_device=series.per_device, in_total=series.in_total)
    word = f"dynamic_bs{batch}_{series.precision}_DP_{DeviceWord(topology.nodes, topology.devices)}"
    return Case(topology, batch, replace(series.request, mode=f"{MODE}:{word}"))


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
            key=KEYS_SEPARATOR.join(("--skip", "--take")),
            found=f"{series.skip} + {series.take}",
            expected=f"at most {section.iters} together (max-iters of {file})",
        )

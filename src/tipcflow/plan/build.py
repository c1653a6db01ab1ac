"""Entry point of the planner: params file, mode and cluster -> Plan."""

from collections import Counter
from collections.abc import Sequence

from tipcflow.domain import Cluster, Compat, ConfigError, Launch, LegKey, Plan, Step, StepKind
from tipcflow.domain.run.names import ModeName
from tipcflow.params import Dialect, ParamsFile
from tipcflow.params.limits import check_lists
from tipcflow.params.modes import ALL_MODES, BENCHMARK
from tipcflow.plan.length import with_length
from tipcflow.plan.needs.slots import notes, replaced
from tipcflow.plan.needs.steps import with_needs
from tipcflow.plan.quirks.catalogue import as_quirks
from tipcflow.plan.quirks.launch import check_launch
from tipcflow.plan.source.choose import choose_dialect
from tipcflow.plan.source.groups import Group
from tipcflow.plan.source.hosts import check_python, check_room, hosts_of, substitutions
from tipcflow.plan.source.options import PlanOptions
from tipcflow.plan.source.reader import Reader
from tipcflow.plan.source.texts import check_texts
from tipcflow.plan.source.variants import as_variant
from tipcflow.plan.spec.as_steps import BashPlanner
from tipcflow.plan.spec.container import contained
from tipcflow.plan.spec.feasible import check_any_device, check_any_training
from tipcflow.plan.spec.planner import SpecPlanner
from tipcflow.plan.spec.planners import planner_for

# Lists whose alternatives name steps.
_LISTS = ("gpu_list", "autocast", "trainers", "infer_model", "infer_export")


def build_plan(
    text: str,
    *,
    file: str,
    suite: str,
    chain: str,
    dialects: Sequence[str],
    mode: str,
    compat: Compat,
    cluster: Cluster | None = None,
    options: PlanOptions | None = None,
) -> Plan:
    """Return the plan of a run of a params file.

    Args:
        text, file: the params file and its path in the suite; `suite`, `chain`: names recorded in the plan.
        dialects: the suite's dialects; the first whose layout matches the file is used.
        mode: one of `ALL_MODES`; `benchmark_train:<case>` measures a single training.
        compat: semantics: of the script, including its defects, or of the file.
        cluster: the cluster of the run; without one the plan contains the file's addresses and accepts every leg.
        options: see `PlanOptions`.

    Raises:
        ConfigError: unknown mode, no matching dialect, inconsistent file, empty plan, or unsuitable cluster.
    """
    options = options or PlanOptions()
    name, word = _split_mode(mode)
    text, original, dialect, params = _read(text, file, dialects, name, options)
    reader = Reader(params, dialect, mode=name, compat=Compat.SPEC, files=options.files)
    _check_values(reader, compat)
    planner = planner_for(text, reader, word=word, cluster=cluster, options=options)
    steps, groups = _spec_steps(planner, compat), planner.groups
    _check_cluster(params, reader, planner, cluster)
    launch = _launch(compat, options, groups, cluster, file, reader.line("gpu_list"))
    if compat is Compat.BASH:
        steps = BashPlanner(text, planner, word=word).steps()
    _check_steps(steps, reader, mode, cluster)
    python = reader.value("python")
    hosts = hosts_of(max(groups, key=lambda group: group.nodes, default=None), cluster)
    steps = with_needs([with_length(step, reader) for step in steps], hosts, options, compat, dialect.value_lists)
    return Plan(
        chain=chain,
        suite=suite,
        dialect=dialect.name,
        model=reader.value("model"),
        params_file=file,
        params_sha256=original.sha256,
        mode=mode,
        compat=compat,
        cluster=cluster.name if cluster else "",
        nodes=tuple(host.name for host in hosts),
        seed=_seed(compat, options),
        repeats=options.repeats,
        diagnose=options.diagnose,
        deterministic=options.deterministic and _seed(compat, options) is not None,
        variants=tuple(as_variant(point) for point in planner.points),
        steps=tuple(contained(steps, cluster)),
        substitutions=notes(original, options.needs.slots) + substitutions(groups, cluster, python, launch),
        quirks=as_quirks(planner.find_quirks()),
    )


def _read(
    text: str, file: str, dialects: Sequence[str], mode: str, options: PlanOptions
) -> tuple[str, ParamsFile, Dialect, ParamsFile]:
    """Return the text with the suite file's values, the original params file, the dialect, the file read."""
    dialect, params = choose_dialect(text, file=file, dialects=dialects, mode=mode)
    if not options.needs.slots:
        return text, params, dialect, params
    text = replaced(text, params, options.needs.slots)
    return text, params, *choose_dialect(text, file=file, dialects=dialects, mode=mode)


def _spec_steps(planner: SpecPlanner, compat: Compat) -> list[Step]:
    """Return the steps in spec semantics. A script that runs what only spec refuses needs the device groups alone.

    Raises:
        ConfigError: the file is refused.
    """
    try:
        return planner.steps()
    except ConfigError:
        if compat is Compat.SPEC or (planner.trains and not planner.points):
            raise
        return []


def _check_values(reader: Reader, compat: Compat) -> None:
    check_lists(reader.params, reader.dialect)
    if compat is Compat.SPEC:
        check_texts(reader)
    check_python(reader.value("python"), file=reader.params.file, line=reader.line("python"))


def _seed(compat: Compat, options: PlanOptions) -> int | None:
    """Return the declared seed; None for the script's own commands, which take no seed."""
    return options.seed if compat is Compat.SPEC and options.seed_argument else None


def _launch(
    compat: Compat, options: PlanOptions, groups: Sequence[Group], cluster: Cluster | None, file: str, line: int
) -> Launch:
    """Return how trainings are launched; the script supports one launcher only.

    Raises:
        ConfigError: the launcher cannot start an entry of line `line`.
    """
    launch = options.launch if compat is Compat.SPEC else Launch.IPS
    for group in groups:
        check_launch(group, hosts_of(group, cluster), launch, file=file, line=line)
    return launch


def _split_mode(mode: str) -> tuple[str, str]:
    """Return the mode's name and the selected benchmark case (`benchmark_train:<case>`).

    Raises:
        ConfigError: the mode does not exist.
    """
    requested = ModeName.parse(mode)
    name, word = requested.mode, requested.case
    if name not in ALL_MODES or (":" in mode and (name != BENCHMARK or not word)):
        raise ConfigError("unknown mode", key="mode", found=mode, expected=f"one of {', '.join(ALL_MODES)}")
    return name, word


def _check_cluster(params: ParamsFile, reader: Reader, planner: SpecPlanner, cluster: Cluster | None) -> None:
    if cluster is not None:
        for group in planner.groups:
            check_room(group, cluster, file=params.file, line=reader.line("gpu_list"))


def _check_devices(steps: list[Step], cluster: Cluster | None, file: str) -> None:
    if cluster is not None:
        check_any_training(steps, cluster=cluster.name, file=file)
        legs = [leg for step in steps for leg in step.legs]
        check_any_device(legs, cluster=cluster.name, file=file)


def _check_steps(steps: list[Step], reader: Reader, mode: str, cluster: Cluster | None) -> None:
    """Raise ConfigError for a plan without steps, with duplicate steps, or without a possible leg."""
    if all(step.kind is StepKind.PREPARE for step in steps):
        raise ConfigError(
            f"nothing would run in mode {mode}",
            file=reader.params.file,
            found=f"no training, export or inference ({reader.dialect.name})",
            expected="a file with commands for this mode",
        )
    ids = [step.id for step in steps] + [str(LegKey(step.id, leg.id)) for step in steps for leg in step.legs]
    twice = [name for name, count in Counter(ids).items() if count > 1]
    if twice:
        slot = next((name for name in _LISTS if len(set(reader.items(name))) < len(reader.items(name))), "")
        raise ConfigError(
            "duplicate entry in a list",
            file=reader.params.file,
            line=reader.line(slot),
            key=reader.key(slot),
            found=f"{reader.value(slot)} ({twice[0]})" if slot else twice[0],
            expected="every alternative of a list once",
        )
    _check_devices(steps, cluster, reader.params.file)

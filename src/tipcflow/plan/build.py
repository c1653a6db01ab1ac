"""Entry point of the planner: params file, mode and cluster -> Plan."""

from collections import Counter
from collections.abc import Sequence

from tipcflow.domain import Cluster, Compat, ConfigError, Launch, Plan, Step, StepKind
from tipcflow.params import Dialect, ParamsFile
from tipcflow.params.modes import ALL_MODES, BENCHMARK
from tipcflow.plan.length import with_length
from tipcflow.plan.quirks.catalogue import as_quirks
from tipcflow.plan.quirks.launch import check_launch
from tipcflow.plan.source.choose import choose_dialect
from tipcflow.plan.source.groups import Group
from tipcflow.plan.source.hosts import check_python, check_room, hosts_of, substitutions
from tipcflow.plan.source.options import PlanOptions
from tipcflow.plan.source.reader import Reader
from tipcflow.plan.source.variants import as_variant
from tipcflow.plan.spec.as_steps import BashPlanner
from tipcflow.plan.spec.container import contained
from tipcflow.plan.spec.feasible import check_any_device
from tipcflow.plan.spec.planner import SpecPlanner
from tipcflow.plan.spec.planners import planner_for


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
    dialect, params = choose_dialect(text, file=file, dialects=dialects, mode=name)
    reader = Reader(params, dialect, mode=name, compat=Compat.SPEC, files=options.files)
    check_python(reader.value("python"), file=file, line=reader.line("python"))
    planner = planner_for(text, reader, word=word, cluster=cluster, options=options)
    steps, groups = planner.steps(), planner.groups
    _check_cluster(params, reader, planner, cluster)
    launch = _launch(compat, options)
    _check_launches(groups, launch, file, reader.line("gpu_list"))
    if compat is Compat.BASH:
        steps = BashPlanner(text, planner, word=word).steps()
    _check_steps(steps, params, dialect, mode)
    _check_devices(steps, cluster, file)
    widest = max(groups, key=lambda group: group.nodes, default=None)
    return Plan(
        chain=chain,
        suite=suite,
        dialect=dialect.name,
        model=reader.value("model"),
        params_file=file,
        params_sha256=params.sha256,
        mode=mode,
        compat=compat,
        cluster=cluster.name if cluster else "",
        nodes=tuple(host.name for host in hosts_of(widest, cluster)),
        seed=_seed(compat, options),
        repeats=options.repeats,
        diagnose=options.diagnose,
        deterministic=options.deterministic and _seed(compat, options) is not None,
        variants=tuple(as_variant(point) for point in planner.points),
        steps=tuple(contained([with_length(step, reader) for step in steps], cluster)),
        substitutions=substitutions(groups, cluster, reader.value("python"), launch),
        quirks=as_quirks(planner.find_quirks()),
    )


def _seed(compat: Compat, options: PlanOptions) -> int | None:
    """Return the declared seed; None for the script's own commands, which take no seed."""
    return options.seed if compat is Compat.SPEC and options.seed_argument else None


def _launch(compat: Compat, options: PlanOptions) -> Launch:
    """Return how trainings are launched; the script supports one launcher only."""
    return options.launch if compat is Compat.SPEC else Launch.IPS


def _split_mode(mode: str) -> tuple[str, str]:
    """Return the mode's name and the selected benchmark case (`benchmark_train:<case>`).

    Raises:
        ConfigError: the mode does not exist.
    """
    name, _, word = mode.partition(":")
    if name not in ALL_MODES or (":" in mode and (name != BENCHMARK or not word)):
        raise ConfigError("there is no such mode", key="mode", found=mode, expected=", ".join(ALL_MODES))
    return name, word


def _check_cluster(params: ParamsFile, reader: Reader, planner: SpecPlanner, cluster: Cluster | None) -> None:
    if cluster is not None:
        for group in planner.groups:
            check_room(group, cluster, file=params.file, line=reader.line("gpu_list"))


def _check_launches(groups: Sequence[Group], launch: Launch, file: str, line: int) -> None:
    for group in groups:
        check_launch(group, launch, file=file, line=line)


def _check_devices(steps: list[Step], cluster: Cluster | None, file: str) -> None:
    if cluster is not None:
        legs = [leg for step in steps for leg in step.legs]
        check_any_device(legs, cluster=cluster.name, file=file)


def _check_steps(steps: list[Step], params: ParamsFile, dialect: Dialect, mode: str) -> None:
    """Raise ConfigError for a plan without steps or with duplicate steps."""
    if all(step.kind is StepKind.PREPARE for step in steps):
        raise ConfigError(
            f"nothing would run in mode {mode}",
            file=params.file,
            found=f"no training, export or inference ({dialect.name})",
            expected="a file that declares something for this mode",
        )
    ids = [step.id for step in steps] + [f"{step.id}/{leg.id}" for step in steps for leg in step.legs]
    twice = [name for name, count in Counter(ids).items() if count > 1]
    if twice:
        raise ConfigError(
            "the file declares the same thing twice",
            file=params.file,
            found=twice[0],
            expected="every alternative of a list once",
        )

"""A request and its files -> the plan of the run."""

import re
import zlib
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet

from tipcflow.config.needs import Needs
from tipcflow.config.suite import Deterministic, Suite
from tipcflow.domain import Cluster, Compat, ConfigError, InfraError, Launch, Plan
from tipcflow.domain.build import FrameworkBuild
from tipcflow.domain.run.names import ChainName
from tipcflow.execute.request import RunRequest
from tipcflow.execute.resolve.drop import without_legs
from tipcflow.execute.resolve.suite_file import check_dialects, in_suite_file, with_prepare
from tipcflow.execute.source.snapshot import Snapshot
from tipcflow.plan import ListedFiles, PlanOptions, build_plan
from tipcflow.remote import paths

# Rendezvous ports: two runs on the same nodes must not share them. Below the default ephemeral range (32768…).
_FIRST_PORT, _PORTS, _PORTS_PER_RUN = 20000, 12000, 32


# First major version of Paddle whose releases have no parameter server.
_WITHOUT_SERVERS = 3
# Seed of runs that request none, so that their losses are comparable.
DEFAULT_SEED = 0


def _check_options(request: RunRequest, suite: Suite) -> None:
    """Raise ConfigError for a dialect that does not exist, or an option that this run would silently ignore."""
    check_dialects(suite, request.suite, request.config_dir)
    if request.compat is Compat.BASH:
        options = {
            "--seed": request.seed is not None,
            "--diagnose": request.diagnose,
            "--drop": bool(request.drop),
        }
        for option in (name for name, made in options.items() if made):
            raise ConfigError(
                "has no effect with --compat bash, which runs exactly what the suite's script would",
                key=option,
                expected="--compat spec, or without this option",
            )
    if request.seed is not None and not suite.seed_argument:
        raise ConfigError(
            f"suite {suite.name} does not support seeds",
            key="--seed",
            found=str(request.seed),
            expected='a suite file with `seed_argument`, for example "--seed={seed}"',
        )


def start_port(run: str, *, before: Iterable[str] = (), taken: AbstractSet[int] = frozenset()) -> int:
    """Return the first port of the run's own block of 32, between 20000 and 31999.

    Derived from the run's id, so that it is known before any node is contacted; blocks in use are skipped.

    Args:
        before: runs that hold leases, older ones first: they have precedence.
        taken: ports in use on any node of the run.

    Raises:
        InfraError: every block contains a port in use.
    """
    chosen: set[int] = set()
    for each in before:
        chosen.add(_block(each, chosen, frozenset()))
    return _FIRST_PORT + _block(run, chosen, taken) * _PORTS_PER_RUN


def _block(run: str, chosen: AbstractSet[int], taken: AbstractSet[int]) -> int:
    blocks = _PORTS // _PORTS_PER_RUN
    preferred = zlib.crc32(run.encode())
    used = {(port - _FIRST_PORT) // _PORTS_PER_RUN for port in taken} | chosen
    for step in range(blocks):
        if (block := (preferred + step) % blocks) not in used:
            return block
    raise InfraError(
        f"no {_PORTS_PER_RUN} consecutive ports are free on the nodes",
        hint=f"see `ss -ant` there; ports {_FIRST_PORT} to {_FIRST_PORT + _PORTS - 1} were checked",
    )


def launch_of(needs: Needs, cluster: Cluster | None) -> Launch:
    """Return how distributed trainings start: the suite's value if its scripts require one, else the cluster's."""
    return needs.launch or (cluster.launch if cluster else None) or Launch.IPS


def _possible(launch: Launch, framework: str, build: FrameworkBuild | None) -> Launch:
    """Return the launcher; refuse a release without parameter servers. A wheel under test may be built with them.

    Source: the releases of Paddle 3 on the package index are built without; 2.6.2 has them.

    Raises:
        ConfigError: the version has none.
    """
    match = re.match(r"\d+", framework)
    if launch is Launch.PS and match and int(match[0]) >= _WITHOUT_SERVERS and not (build and build.wheel):
        raise ConfigError(
            "ps needs parameter servers, which this release of Paddle is built without",
            key="launch",
            found=f"Paddle {framework}",
            expected="Paddle 2, such as the environment of requirements/node-ps.txt",
        )
    return launch


def make_plan(
    request: RunRequest,
    suite: Suite,
    cluster: Cluster | None,
    snapshot: Snapshot,
    *,
    run: str,
    step_deadline_s: float = 900.0,
    cpu_flags: Mapping[str, frozenset[str]] | None = None,
    port: int | None = None,
    framework: str = "",
    build: FrameworkBuild | None = None,
) -> Plan:
    """Return the plan of the run.

    Args:
        framework: version of the nodes' framework; '' if unknown.
        build: installed into the run's own environment, None for the framework of the nodes.
        port: where the ranks of a distributed training meet, if free ports are known.

    Raises:
        ConfigError: the params file, the mode or the cluster do not permit it.
    """
    _check_options(request, suite)
    device = cluster.nodes[0].device if cluster else "gpu"
    made = _deterministic(request, suite, device)
    needs = suite.needs(framework=framework, device=device, mode=request.mode, params=snapshot.params_file)
    own = suite.environment == "run" or bool(needs.packages or build)
    with in_suite_file(request):
        plan = build_plan(
            snapshot.params_text,
            file=snapshot.params_file,
            suite=suite.name,
            chain=str(ChainName.of_file(suite.name, snapshot.params_file)),
            dialects=suite.dialects,
            mode=request.mode,
            compat=request.compat,
            cluster=_with_own_python(cluster, run) if cluster and own else cluster,
            options=PlanOptions(
                seed=DEFAULT_SEED if request.seed is None else request.seed,
                seed_argument=suite.seed_argument,
                deterministic=made is not None,
                training_env=made.environment if made else {},
                training_arguments=made.arguments if made else "",
                repeats=request.repeats,
                diagnose=request.diagnose,
                launch=_possible(launch_of(needs, cluster), framework, build),
                start_port=start_port(run) if port is None else port,
                cpu_flags=None if cpu_flags is None else dict(cpu_flags),
                mixed_on_cpu=_mixes_on_cpu(request, suite),
                step_deadline_s=step_deadline_s,
                files=ListedFiles(sorted(snapshot.names)),
                prepare=suite.prepare,
                needs=needs,
                own_environment=own,
                build=build,
                interpreters={node.name: node.step_python for node in cluster.nodes} if cluster else {},
            ),
        )
    return without_legs(with_prepare(plan, suite, snapshot, request), request.drop)


def _deterministic(request: RunRequest, suite: Suite, device: str) -> Deterministic | None:
    """What makes a training deterministic; `compat bash` runs exactly what the suite's script would run."""
    return suite.deterministic_on(device) if request.compat is Compat.SPEC else None


def _mixes_on_cpu(request: RunRequest, suite: Suite) -> bool:
    """Whether trainings with mixed precision run on CPUs: Paddle ignores it; `compat bash` runs them anyway."""
    return suite.framework != "paddlepaddle" or request.compat is Compat.BASH


def _with_own_python(cluster: Cluster, run: str) -> Cluster:
    """Return the cluster with the interpreters of the run's own environment."""
    nodes = []
    for node in cluster.nodes:
        python = f"{paths.run_bin(node, run)}/python"
        container = node.container and node.container.model_copy(update={"python": python})
        nodes.append(node.model_copy(update={"python": python, "container": container}))
    return cluster.model_copy(update={"nodes": tuple(nodes)})

"""A request and its files -> the plan of this run."""

import zlib
from collections.abc import Mapping

from tipcflow.config.suite import Suite
from tipcflow.domain import Cluster, Compat, ConfigError, Plan
from tipcflow.execute.request import RunRequest, chain_name
from tipcflow.execute.source import Snapshot
from tipcflow.plan import ListedFiles, PlanOptions, build_plan

# Rendezvous ports: two runs on the same nodes must not share them. Below the usual ephemeral range (32768…).
_FIRST_PORT, _PORTS, _PORTS_PER_RUN = 20000, 12000, 32


# Runs without a wish are seeded all the same, so that their losses can be compared.
DEFAULT_SEED = 0


def _check_options(request: RunRequest, suite: Suite) -> None:
    """Raise ConfigError for a wish that this run would silently ignore."""
    if request.compat is Compat.BASH:
        wishes = {"--seed": request.seed is not None, "--diagnose": request.diagnose}
        for wish in (name for name, made in wishes.items() if made):
            raise ConfigError(
                "has no effect with --compat bash, which runs exactly what the suite's script would",
                key=wish,
                expected="--compat spec, or no such option",
            )
    if request.seed is not None and not suite.seed_argument:
        raise ConfigError(
            f"suite {suite.name} cannot be seeded",
            key="--seed",
            found=str(request.seed),
            expected='a suite file with `seed_argument`, for example "--seed={seed}"',
        )


def start_port(run: str) -> int:
    """First port of the run's own block of 32, derived from its id so that a re-attach finds the same."""
    blocks = _PORTS // _PORTS_PER_RUN
    return _FIRST_PORT + (zlib.crc32(run.encode()) % blocks) * _PORTS_PER_RUN


def make_plan(
    request: RunRequest,
    suite: Suite,
    cluster: Cluster | None,
    snapshot: Snapshot,
    *,
    run: str,
    step_deadline_s: float = 900.0,
    cpu_flags: Mapping[str, frozenset[str]] | None = None,
) -> Plan:
    """What the run will do.

    Raises:
        ConfigError: the params file, the mode or the cluster do not allow it.
    """
    _check_options(request, suite)
    return build_plan(
        snapshot.params_text,
        file=snapshot.params_file,
        suite=suite.name,
        chain=chain_name(suite.name, snapshot.params_file),
        dialects=suite.dialects,
        mode=request.mode,
        compat=request.compat,
        cluster=cluster,
        options=PlanOptions(
            seed=DEFAULT_SEED if request.seed is None else request.seed,
            seed_argument=suite.seed_argument,
            repeats=request.repeats,
            diagnose=request.diagnose,
            start_port=start_port(run),
            cpu_flags=dict(cpu_flags) if cpu_flags is not None else None,
            step_deadline_s=step_deadline_s,
            files=ListedFiles(sorted(snapshot.names)),
            prepare=suite.prepare,
        ),
    )

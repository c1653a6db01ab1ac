"""A request and its files -> the plan of this run."""

import zlib
from collections.abc import Mapping

from tipcflow.config.suite import Suite
from tipcflow.domain import Cluster, Plan
from tipcflow.execute.request import RunRequest, chain_name
from tipcflow.execute.source import Snapshot
from tipcflow.plan import ListedFiles, PlanOptions, build_plan

# Rendezvous ports: two runs on the same nodes must not share them. Below the usual ephemeral range (32768…).
_FIRST_PORT, _PORTS, _PORTS_PER_RUN = 20000, 12000, 32


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
            seed=request.seed,
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

"""Selection of DAGs, params and run IDs by `tipcflow trigger`."""

import fnmatch
import hashlib
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tipcflow.domain import ConfigError, dag_id_of
from tipcflow.domain.run.names import DagId
from tipcflow.domain.triggers import RESERVED

if TYPE_CHECKING:
    from tipcflow.airflow_api import Airflow, Dag

GENERIC_DAG = "certify"
CONFIRM_DAG = "confirm"
_LONGEST_HINT = 1000
_GLOB = re.compile(r"[*?\[]")
_PREFIX = re.compile(r"^[A-Za-z0-9.~:+-]+(_[A-Za-z0-9.~:+-]+)*$")
# A full commit hash; any other ref may resolve to other files later.
_COMMIT = re.compile(r"^([0-9a-f]{40}|[0-9a-f]{64})$")


@dataclass(frozen=True)
class TriggerRequest:
    """One run to create. `chain` is the displayed name, `run_id` Airflow's id."""

    chain: str
    dag_id: str
    conf: Mapping[str, Any]
    run_id: str


def choose(
    airflow: "Airflow", chains: Sequence[str], file: Mapping[str, str], *, unpause: bool = False
) -> dict[str, "Dag"]:
    """Chain name -> its DAG, after checking that it can start; starts nothing.

    Args:
        chains: `suite/model/file`, DAG IDs, or globs of either.
        file: `suite` and `params_file` for the generic DAG, instead of chains.
        unpause: unpause a paused DAG.

    Raises:
        ConfigError: no such chain (lists similar names), or the DAG is paused.
        InfraError: Airflow cannot be reached.
    """
    dags = _generic(airflow, chains, file) if file else _chain_dags(airflow, chains)
    for dag in dags.values():
        _startable(airflow, dag, unpause=unpause)
    return dags


def trigger_requests(
    dags: Mapping[str, "Dag"], conf: Mapping[str, Any], *, prefix: str, again: bool = False
) -> list[TriggerRequest]:
    """The runs to create, one per DAG.

    Args:
        conf: params of all runs; omitted ones have the DAG's defaults.
        prefix: the part of the run ID before `__`, which names the trigger.
        again: create a new run even if the commit has one.

    Raises:
        ConfigError: the prefix is invalid or reserved.
    """
    if not _PREFIX.match(prefix):
        raise ConfigError(
            "is not a valid run ID prefix",
            key="--run-id-prefix",
            found=prefix,
            expected="letters, digits, . ~ : + -, and no __",
        )
    if prefix in RESERVED:
        raise ConfigError(
            "is reserved for DAG runs that tasks of tipcflow start",
            key="--run-id-prefix",
            found=prefix,
            expected="another prefix, such as ci",
        )
    return [
        TriggerRequest(chain, dag.dag_id, conf, run_id(prefix, dag.dag_id, conf, again=again))
        for chain, dag in dags.items()
    ]


def run_id(prefix: str, dag_id: str, conf: Mapping[str, Any], *, again: bool = False) -> str:
    """`<prefix>__<hash>`: equal requests for a commit share one run, so a retried CI job finds its run.

    Without a full commit as `suite_ref` the files may have changed, so each call creates a new run.
    """
    text = json.dumps([dag_id, dict(conf)], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    if again or not is_commit(conf.get("suite_ref")):
        return f"{prefix}__{digest}-{secrets.token_hex(4)}"
    return f"{prefix}__{digest}"


def is_commit(ref: object) -> bool:
    """Whether a ref is a full commit hash, which always means the same files."""
    return isinstance(ref, str) and bool(_COMMIT.match(ref))


def _generic(airflow: "Airflow", chains: Sequence[str], file: Mapping[str, str]) -> dict[str, "Dag"]:
    if chains or set(file) != {"suite", "params_file"}:
        raise ConfigError(
            "must be given together and without CHAIN",
            key="--suite and --params-file",
            found=" ".join([*chains, *file.values()]),
            expected="CHAIN…, or --suite S --params-file F",
        )
    return {f"{file['suite']}/{file['params_file']}": airflow.dag(GENERIC_DAG)}


def _chain_dags(airflow: "Airflow", chains: Sequence[str]) -> dict[str, "Dag"]:
    if not chains:
        raise ConfigError(
            "no chain",
            key="CHAIN",
            expected="suite/model/file, its DAG ID, or a glob",
            hint="only a framework build (--framework, --framework-wheel) needs no CHAIN",
        )
    listed = airflow.dags() if any(map(_GLOB.search, chains)) else []
    # By DAG: a chain that is named and also matches a glob is one run.
    by_id: dict[str, Dag] = {}
    for chain in chains:
        dags = _matching(listed, chain) if _GLOB.search(chain) else [_chain_dag(airflow, chain)]
        by_id |= {dag.dag_id: dag for dag in dags}
    return {dag.name: dag for dag in by_id.values()}


def _chain_dag(airflow: "Airflow", chain: str) -> "Dag":
    dag = airflow.dag(dag_id_of(chain) if "/" in chain else chain)
    if not _is_chain(dag):
        raise ConfigError(
            f"DAG {dag.dag_id} is not a chain", key="CHAIN", found=chain, expected="suite/model/file"
        )
    return dag


def _matching(listed: Sequence["Dag"], glob: str) -> list["Dag"]:
    chains = [dag for dag in listed if _is_chain(dag)]
    matches = [dag for dag in chains if fnmatch.fnmatchcase(dag.dag_id, DagId.glob_of_chains(glob))]
    if not matches:
        names = ", ".join(dag.name for dag in chains) or "none"
        raise ConfigError("no chain matches", key="CHAIN", found=glob, hint=f"chains: {names}"[:_LONGEST_HINT])
    return matches


def _is_chain(dag: "Dag") -> bool:
    return DagId.parse(dag.dag_id).is_of_chain


def _startable(airflow: "Airflow", dag: "Dag", *, unpause: bool) -> None:
    if dag.has_import_errors:
        raise ConfigError(f"Airflow cannot import the file of DAG {dag.dag_id}", hint="see its import errors")
    if dag.is_paused and unpause:
        airflow.unpause(dag.dag_id)
    elif dag.is_paused:
        raise ConfigError(
            f"DAG {dag.dag_id} is paused: the run would never start", hint="unpause it in Airflow, or --unpause"
        )

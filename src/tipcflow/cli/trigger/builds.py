"""Runs that certify a framework build: Airflow's configs/repositories names their chains."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tipcflow.cli.local.running import local_home
from tipcflow.cli.trigger.selection import TriggerRequest, choose, trigger_requests
from tipcflow.domain import InfraError, dag_id_of
from tipcflow.execute.source.wheel import check_address, check_source, fetch_wheel, is_address

if TYPE_CHECKING:
    from tipcflow.airflow_api import Airflow


def build_requests(
    airflow: "Airflow",
    conf: Mapping[str, Any],
    note: Callable[[str], None],
    *,
    prefix: str,
    again: bool = False,
    unpause: bool = False,
) -> list[TriggerRequest]:
    """The runs to create for the build that `conf` names, after checking that they can start; starts nothing.

    Mode, cluster and policy are those of the repository, unless `conf` has others.

    Args:
        conf: params of all runs, with `framework` or `framework_wheel`.
        note: prints progress.

    Raises:
        ConfigError: no file of configs/repositories certifies the build, one is invalid, a DAG is missing or
            paused, or the wheel has another hash.
        InfraError: Airflow cannot be reached.
    """
    build = {name: conf[name] for name in ("framework", "framework_wheel", "framework_sha256") if name in conf}
    report = airflow.build_runs(build)
    dags = choose(airflow, [run.chain for run in report.runs], {}, unpause=unpause)
    by_id = {dag.dag_id: (name, dag) for name, dag in dags.items()}
    requests = []
    for run in report.runs:
        params = {"mode": run.mode, "cluster": run.cluster, "policy": run.policy, **conf}
        name, dag = by_id[dag_id_of(run.chain)]
        requests += trigger_requests({name: dag}, params, prefix=prefix, again=again)
    if is_address(wheel := conf.get("framework_wheel", "")):
        _check_wheel(wheel, conf["framework_sha256"], note)
    sources = ", ".join(dict.fromkeys(run.repository for run in report.runs))
    note(f"{report.framework}: {len(requests)} runs, declared by {sources}")
    return requests


def _check_wheel(url: str, sha256: str, note: Callable[[str], None]) -> None:
    """Compare the hash once, before each of many runs reports that it is wrong."""
    note("checking the hash of the wheel")
    try:
        check_address(url, sha256)
    except InfraError as error:
        note(f"{error.message}; the runs check its hash")


def wheel_params(source: str | None, sha256: str | None) -> dict[str, str]:
    """The params of a wheel; a path is copied to the local Airflow, if that is used.

    Raises:
        ConfigError: an invalid hash, or a path and a remote Airflow.
    """
    if source and not is_address(source) and "/" in source and (home := local_home()):
        build = fetch_wheel(source, sha256 or "", home=home)
        return {"framework_wheel": build.wheel, "framework_sha256": build.sha256}
    check_source(source or "", sha256 or "", only_names=True)
    given = {"framework_wheel": source, "framework_sha256": sha256}
    return {name: value for name, value in given.items() if value is not None}

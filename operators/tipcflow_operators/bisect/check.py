"""First task of the DAG `bisect`: validates everything that needs no node."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, Context

from tipcflow.config.cluster import load_cluster
from tipcflow.config.settings import settings
from tipcflow.domain import ConfigError
from tipcflow.domain.numbers.units import counted
from tipcflow.execute.source.wheel import KEY
from tipcflow_operators.airflow.database import refuse_sqlite_between_machines
from tipcflow_operators.airflow.errors import tipcflow_errors_fail_task
from tipcflow_operators.bisect.request import BisectRequest, bisect_request
from tipcflow_operators.bisect.versions import Versions
from tipcflow_operators.tasks.request import given_params, param_error

if TYPE_CHECKING:
    from tipcflow.config.suite import Suite

CHECK = "check"
_NAMES = {"METRIC": "metric", "PARAMS": "params_file", KEY: "builds", "--sha256": "builds"}


class CheckOperator(BaseOperator):
    """Validates the params, the refs or builds, and the params file.

    Returns:
        The versions, oldest first: later tasks test these, although a branch may move.
    """

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the versions. An invalid param is a `config_error`, before anything starts."""
        with tipcflow_errors_fail_task():
            refuse_sqlite_between_machines()
            request = request_of(context)
            try:
                return self._check(request).as_xcom()
            except ConfigError as error:
                raise param_error(error, _NAMES) from error

    def _check(self, request: BisectRequest) -> Versions:
        from tipcflow.config.suite import load_suite
        from tipcflow.execute.bisection.holder import check_holder
        from tipcflow.execute.chain.measured import chain_metrics
        from tipcflow.execute.verdict.judge import load_policy
        from tipcflow.store import Store

        chosen, base = settings(), request.base
        load_cluster(base.cluster, chosen.config_dir)
        load_policy(base.policy, chosen.config_dir)
        with Store.open_in_task() as store:
            named = request.subject
            named.check(chain_metrics(store, named.chain, named.mode, named.compat))
            if request.run:
                check_holder(store, request.run, named, base.cluster)
        suite, cache = load_suite(base.suite, chosen.config_dir), chosen.home / "suites"
        checked = _builds(request, suite, cache) if request.builds else _commits(request, suite, cache)
        subject, versions = request.subject, checked.versions
        count = counted(len(versions) - 1, versions[0].NOUN)
        self.log.info("%s, %s: %s up to %s", subject.chain, subject.name, count, versions[-1])
        return checked


def _commits(request: BisectRequest, suite: "Suite", cache: Path) -> Versions:
    """Return the commits between both refs, with what they touch."""
    from tipcflow.execute.bisection.commits import commits_between
    from tipcflow.execute.bisection.touched import with_touches
    from tipcflow.execute.source.params_at import check_params_at

    commits = commits_between(suite, request.good, request.bad, cache=cache)
    refs = {"good": request.good, "bad": request.bad}
    check_params_at(suite, request.base.params, refs, cache=cache, only_inside=True)
    return Versions(with_touches(suite, commits, request.base.params, cache=cache, only_inside=True))


def _builds(request: BisectRequest, suite: "Suite", cache: Path) -> Versions:
    """Return the builds, whose wheels are found or have an allowed address, and the commit of the suite."""
    from tipcflow.execute.source.snapshot import take_snapshot
    from tipcflow.execute.source.wheel import name_build

    chosen = settings()
    for build in request.builds:
        if build.wheel:
            name_build(build.wheel, build.sha256, home=chosen.home, hosts=chosen.wheel_hosts)
    ref = request.base.suite_ref
    snapshot = take_snapshot(suite, request.base.params, ref, cache=cache, only_inside=True)
    return Versions(request.builds, suite_commit=snapshot.commit if ref or suite.git else "")


def request_of(context: Context) -> BisectRequest:
    """Return the request of the DAG run.

    Raises:
        ConfigError: a param is invalid.
    """
    return bisect_request(given_params(context), dag_run=context["dag_run"])

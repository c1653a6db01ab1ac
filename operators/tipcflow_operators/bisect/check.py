"""First task of the DAG `bisect`: validates everything that needs no node."""

from airflow.sdk import BaseOperator, Context

from tipcflow.config.cluster import load_cluster
from tipcflow.config.settings import settings
from tipcflow.domain import ConfigError
from tipcflow_operators.airflow.database import refuse_sqlite_between_machines
from tipcflow_operators.airflow.errors import tipcflow_errors_fail_task
from tipcflow_operators.bisect.request import BisectRequest, bisect_request
from tipcflow_operators.tasks.request import given_params, param_error

CHECK = "check"
_NAMES = {"METRIC": "metric"}


class CheckOperator(BaseOperator):
    """Validates the params, both refs and the params file.

    Returns:
        (id, title) of each commit, oldest first: later tasks test these commits, although a branch may move.
    """

    def execute(self, context: Context) -> list[list[str]]:
        """Return the commits. An invalid param is a `config_error`, before anything starts."""
        with tipcflow_errors_fail_task():
            refuse_sqlite_between_machines()
            request = request_of(context)
            try:
                return self._check(request)
            except ConfigError as error:
                raise param_error(error, _NAMES) from error

    def _check(self, request: BisectRequest) -> list[list[str]]:
        from tipcflow.config.suite import load_suite
        from tipcflow.execute.bisection.commits import commits_between
        from tipcflow.execute.source.snapshot import take_snapshot
        from tipcflow.execute.verdict.judge import load_policy
        from tipcflow.store import Store

        chosen, base = settings(), request.base
        request.subject.check()
        load_cluster(base.cluster, chosen.config_dir)
        load_policy(base.policy, chosen.config_dir)
        if request.run:
            with Store.open_in_task() as store:
                store.runs.get(request.run)
        suite, cache = load_suite(base.suite, chosen.config_dir), chosen.home / "suites"
        commits = commits_between(suite, request.good, request.bad, cache=cache)
        for commit in (commits[0], commits[-1]):
            take_snapshot(suite, base.params, commit.id, cache=cache, only_inside=True)
        subject = request.subject
        self.log.info("%s, %s: %d commits up to %s", subject.chain, subject.name, len(commits) - 1, commits[-1])
        return [[commit.id, commit.title] for commit in commits]


def request_of(context: Context) -> BisectRequest:
    """Return the request of the DAG run.

    Raises:
        ConfigError: a param is invalid.
    """
    dag_run = context["dag_run"]
    return bisect_request(given_params(context), dag_id=dag_run.dag_id, dag_run_id=dag_run.run_id)

"""First task of the DAG `ab`: validates everything that needs no node."""

from airflow.sdk import BaseOperator, Context

from tipcflow.config.cluster import load_cluster
from tipcflow.config.settings import settings
from tipcflow.domain import ConfigError
from tipcflow_operators.ab.request import AbRequest, ab_request
from tipcflow_operators.airflow.database import refuse_sqlite_between_machines
from tipcflow_operators.airflow.errors import tipcflow_errors_fail_task
from tipcflow_operators.tasks.request import given_params, param_error

CHECK = "check"
_NAMES = {"PARAMS": "params_file"}


class CheckOperator(BaseOperator):
    """Validates the params, both refs and the params file.

    Returns:
        Side -> its name and commit: later tasks test these commits, although a branch may move.
    """

    def execute(self, context: Context) -> dict[str, dict[str, str]]:
        """Return the checked comparison. An invalid param is a `config_error`, before anything starts."""
        with tipcflow_errors_fail_task():
            refuse_sqlite_between_machines()
            request = request_of(context)
            try:
                return self._check(request)
            except ConfigError as error:
                raise param_error(error, _NAMES) from error

    def _check(self, request: AbRequest) -> dict[str, dict[str, str]]:
        from tipcflow.config.suite import load_suite
        from tipcflow.domain.run.names import ChainName
        from tipcflow.execute.ab.metrics import check_names
        from tipcflow.execute.ab.sides import check_limits, sides_of
        from tipcflow.execute.ab.text import opening
        from tipcflow.execute.chain.measured import chain_metrics
        from tipcflow.execute.source.params_at import check_params_at
        from tipcflow.execute.verdict.judge import load_policy
        from tipcflow.store import Store

        chosen = settings()
        check_limits(request.limits)
        load_cluster(request.a.cluster, chosen.config_dir)
        load_policy(request.a.policy, chosen.config_dir)
        suite = load_suite(request.a.suite, chosen.config_dir)
        chain = str(ChainName.of_file(suite.name, request.a.params))
        with Store.open_in_task() as store:
            check_names(request.names, chain_metrics(store, chain, request.a.mode, request.a.compat.value))
        sides = sides_of(request.a, request.b, chosen.home)
        refs = {"a": request.a.suite_ref or "", "b": request.b.suite_ref or ""}
        check_params_at(suite, request.a.params, refs, cache=chosen.home / "suites", only_inside=True)
        for line in opening(*sides, request.limits).splitlines():
            self.log.info("%s", line)
        return {side.label: {"name": side.name, "commit": side.commit} for side in sides}


def request_of(context: Context) -> AbRequest:
    """Return the request of the DAG run.

    Raises:
        ConfigError: a param is invalid.
    """
    return ab_request(given_params(context), dag_run=context["dag_run"])

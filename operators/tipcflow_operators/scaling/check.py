"""First task of the DAG `scaling`: validates everything that needs no node."""

from typing import Any

from airflow.sdk import BaseOperator, Context

from tipcflow.domain import ConfigError
from tipcflow.domain.run.names import ModeName
from tipcflow.execute.scaling.series import Series
from tipcflow_operators.airflow.database import refuse_sqlite_between_machines
from tipcflow_operators.airflow.errors import tipcflow_errors_fail_task
from tipcflow_operators.scaling.request import NAMES, scaling_request
from tipcflow_operators.tasks.request import given_params, param_error

CHECK = "check"


class CheckOperator(BaseOperator):
    """Validates the params and plans every topology.

    Returns:
        One entry per topology, in the order of the runs: `topology`, `batch` (size per device), `case` of the
        benchmark, and `why`, the reason if the topology is not measured.
    """

    def execute(self, context: Context) -> list[dict[str, Any]]:
        """Return the topologies. An invalid param is a `config_error`, before anything starts."""
        from tipcflow.execute.scaling.series import checked_cases

        with tipcflow_errors_fail_task():
            refuse_sqlite_between_machines()
            series, _ = series_of(context)
            try:
                cases = checked_cases(series)
            except ConfigError as error:
                raise param_error(error, NAMES) from error
        for case in cases:
            self.log.info("%s: %s", case.topology.name, case.why or f"batch size {case.batch} per device")
        return [
            {
                "topology": case.topology.name,
                "batch": case.batch,
                "case": ModeName.parse(case.request.mode).case,
                "why": case.why,
            }
            for case in cases
        ]


def series_of(context: Context) -> tuple[Series, dict[str, Any]]:
    """Return the series of the DAG run, and the params of its runs.

    Raises:
        ConfigError: a param is invalid.
    """
    try:
        return scaling_request(given_params(context), dag_run=context["dag_run"])
    except ConfigError as error:
        raise param_error(error, NAMES) from error

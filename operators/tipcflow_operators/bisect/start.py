"""The sweep `bisections` of the DAG `maintenance`: starts bisections of regressions and failures."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from tipcflow.domain import TipcflowError
from tipcflow.domain.triggers import BISECT
from tipcflow_operators.airflow import dag_runs

if TYPE_CHECKING:
    from tipcflow.execute.sweeps.maintenance import Upkeep

# First part of the IDs of DAG runs that no user started.
_WORD = "auto"


def bisections(upkeep: "Upkeep") -> str:
    """Start the bisections that policies include, within their limits; each problem is bisected once."""
    from tipcflow.execute.bisection.candidates import wanted_bisections

    wanted = wanted_bisections(upkeep.store, upkeep.config_dir, upkeep.now, upkeep.report)
    if not wanted:
        return "no bisection is due"
    active = dag_runs.count_active(BISECT)
    started, waiting = 0, 0
    for each in wanted:
        run_id = f"{_WORD}__{each.run}"
        if dag_runs.state_of(BISECT, run_id) is not None:
            continue
        if active + started >= each.rule.at_once:
            waiting += 1
            upkeep.report(f"{each.title}: the bisection waits, {active + started} are active")
            continue
        after = datetime.fromtimestamp(int(upkeep.now), UTC)
        try:
            dag_runs.start(BISECT, run_id, run_after=after, conf=each.conf, note=each.title)
        except TipcflowError as error:
            upkeep.report(f"{each.title}: the bisection was not started: {error.message}")
            continue
        started += 1
        upkeep.report(f"{each.title}: DAG run {run_id} of {BISECT} searches the commit")
    return f"{started} bisections started, {waiting} wait, {active} were active"

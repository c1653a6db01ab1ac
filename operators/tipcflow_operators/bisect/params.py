"""Params of the DAG `bisect`, as a JSON schema from which the UI generates the form."""

from copy import copy
from pathlib import Path

from airflow.sdk import Param

from tipcflow_operators.bisect.request import SHARED_PARAMS
from tipcflow_operators.chain.params import chain_params, run_params
from tipcflow_operators.manual_dag import number_param
from tipcflow_operators.tasks.request import NODES_OF_PATTERN, REF_PATTERN


def bisect_params(config_dir: Path) -> dict[str, Param]:
    """Return the params: the chain, both ends, the metric, and when the search ends."""
    known = {**chain_params(config_dir), **run_params(config_dir)}
    params = {name: copy(known[name]) for name in SHARED_PARAMS}
    return {**params, **_ends(), **_subject(), **_limits()}


def _ends() -> dict[str, Param]:
    texts = {"good": "Suite ref at which the chain was good.", "bad": "Later suite ref at which the chain is bad."}
    ends = {
        name: Param("", type="string", pattern=REF_PATTERN, title=name.capitalize(), description=text)
        for name, text in texts.items()
    }
    return {
        **ends,
        "builds": Param(
            None,
            type=["null", "array"],
            items={"type": "string", "minLength": 1},
            title="Builds",
            description="Framework builds instead of `good` and `bad`, one per line, oldest first: NAME==VERSION, "
            "or a wheel and --hash=sha256:HASH. The first one is good, the last one bad.",
        ),
        "suite_ref": Param(
            "",
            type="string",
            pattern=REF_PATTERN,
            title="Suite ref",
            description="Suite ref to test with `builds`. Empty: the working tree, or a clone's default branch.",
        ),
    }


def _subject() -> dict[str, Param]:
    return {
        "metric": Param(
            "",
            type="string",
            title="Metric",
            description="Metric that became worse, for example batch_cost; failure for a chain that fails.",
        ),
        "step": Param(
            "", type="string", title="Step", description="Step with the metric: its ID or the last part of it."
        ),
        "leg": Param("", type="string", title="Leg", description="Leg with the metric."),
    }


def _limits() -> dict[str, Param]:
    return {
        "confidence": number_param(
            0.95, "Confidence", "Required probability of the result.", minimum=0.5, maximum=0.999
        ),
        "max_runs": number_param(40, "Maximum runs", "Maximum number of new runs; 0 for no limit.", minimum=0),
        "budget_minutes": number_param(
            0.0, "Budget", "Maximum duration of all new runs together, minutes; 0: no limit.", minimum=0
        ),
        "parallel": number_param(1, "Parallel runs", "Maximum number of active runs.", minimum=1, maximum=8),
        "run": Param(
            "",
            type="string",
            pattern=NODES_OF_PATTERN,
            title="Run",
            description="First bad run, with which the result is stored. Empty: the first run of the search.",
        ),
    }

"""Params of the DAG `ab`, as a JSON schema from which the UI generates the form."""

from copy import copy
from pathlib import Path

from airflow.sdk import Param

from tipcflow_operators.ab.request import SHARED_PARAMS, SIDE_PARAMS
from tipcflow_operators.chain.params import chain_params, run_params
from tipcflow_operators.manual_dag import number_param


def ab_params(config_dir: Path) -> dict[str, Param]:
    """Return the params: the chain, both versions, and when the comparison ends."""
    known = {**chain_params(config_dir), **run_params(config_dir)}
    params = {name: copy(known[name]) for name in SHARED_PARAMS}
    for side, names in SIDE_PARAMS.items():
        for name, own in names.items():
            schema = {**known[name].schema, "title": f"{known[name].schema['title']} of {side.upper()}"}
            params[own] = Param(None, known[name].description, schema=schema)
    return {**params, **_limits()}


def _limits() -> dict[str, Param]:
    return {
        "metric": Param(
            None,
            type=["null", "array"],
            items={"type": "string", "minLength": 1},
            title="Metrics",
            description="Metrics to compare, one per line. Default: training speed and latency of each leg.",
        ),
        "pairs": number_param(0, "Pairs", "Number of pairs; 0: until every metric is decided.", minimum=0),
        "max_pairs": number_param(20, "Maximum pairs", "Maximum number of pairs if `pairs` is 0.", minimum=1),
        "warm_up": number_param(1, "Warm-up pairs", "Pairs before the first one that counts.", minimum=0),
        "margin": number_param(
            0.02, "Margin", "Relative difference that is treated as equal.", minimum=0, maximum=0.5
        ),
        "error": number_param(
            0.02, "Error", "Maximum probability of a wrong outcome per metric.", minimum=0.0001, maximum=0.2
        ),
        "budget_minutes": number_param(
            0.0, "Budget", "Maximum duration of all runs together, minutes; 0: no limit.", minimum=0
        ),
    }

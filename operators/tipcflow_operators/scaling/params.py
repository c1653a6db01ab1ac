"""Params of the DAG `scaling`, as a JSON schema from which the UI generates the form."""

from copy import copy
from pathlib import Path

from airflow.sdk import Param

from tipcflow_operators.chain.params import chain_params, run_params
from tipcflow_operators.manual_dag import number_param
from tipcflow_operators.scaling.request import RUN_PARAMS


def scaling_params(config_dir: Path) -> dict[str, Param]:
    """Return the params: the chain, the topologies, and how a speed is computed."""
    known = {**chain_params(config_dir), **run_params(config_dir)}
    params = {name: copy(known[name]) for name in RUN_PARAMS}
    params["repeats"] = Param(
        5, "Number of trainings per topology; the speed is their median.", schema=params["repeats"].schema
    )
    return {**params, **_series_params(), **_speed_params()}


def _series_params() -> dict[str, Param]:
    return {
        "topologies": Param(
            None,
            type=["null", "array"],
            items={"type": "string", "pattern": r"^[1-9]\d{0,3}n[1-9]\d{0,3}g$"},
            title="Topologies",
            description="Nodes and devices per node, for example `2n8g`, one per line. Default: the usual ones "
            "that the cluster has.",
        ),
        "batch_size_per_device": number_param(
            4, "Batch size per device", "0: set `global_batch_size`.", minimum=0
        ),
        "global_batch_size": number_param(
            0, "Global batch size", "Batch size of all devices; 0: set `batch_size_per_device`.", minimum=0
        ),
        "precision": Param(
            "fp32",
            type="string",
            minLength=1,
            title="Precision",
            description="One of the params file's `fp_items`, for example fp32 or amp.",
        ),
    }


def _speed_params() -> dict[str, Param]:
    return {
        "by_time": Param(
            False,
            type="boolean",
            title="Speed from batch_cost",
            description="Compute the speed from `batch_cost` instead of the printed speed.",
        ),
        "skip": number_param(50, "Skipped iterations", "Number of warm-up iterations to skip.", minimum=0),
        "take": number_param(100, "Averaged iterations", "Number of iterations to average.", minimum=1),
    }

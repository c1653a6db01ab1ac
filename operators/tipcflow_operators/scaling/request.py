"""Validates the params of the DAG `scaling` and converts them to a series of runs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tipcflow.execute.scaling.series import MODE, Series
from tipcflow.parse.scaling.speeds import PRINTED
from tipcflow_operators.tasks.request import read_conf, read_params, refuse_unknown, request_of
from tipcflow_operators.tasks.started_by import StartedRun

# Params of the runs.
RUN_PARAMS = (
    "suite",
    "params_file",
    "suite_ref",
    "cluster",
    "framework",
    "framework_wheel",
    "framework_sha256",
    "seed",
    "repeats",
    "policy",
)
# Options of `tipcflow scaling run` whose param has another name.
NAMES = {"--topology": "topologies"}


class _SeriesConf(BaseModel):
    """Params of the series; the bounds are those of the options of `tipcflow scaling run`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    topologies: list[str] | None = None
    batch_size_per_device: int = Field(default=0, ge=0)
    global_batch_size: int = Field(default=0, ge=0)
    precision: str = Field(default="fp32", min_length=1)
    by_time: bool = False
    skip: int = Field(default=50, ge=0)
    take: int = Field(default=100, ge=1)


SCALING_PARAMS = (*RUN_PARAMS, *_SeriesConf.model_fields)


def scaling_request(given: Mapping[str, Any], *, dag_run: StartedRun) -> tuple[Series, dict[str, Any]]:
    """Return the series, and the params of its runs of the DAG `certify` without their case.

    Args:
        given: the DAG's params, overridden by those of this run.

    Raises:
        ConfigError: an unknown name or an invalid value, or the ID of the DAG run is reserved; names the param.
    """
    refuse_unknown(given, SCALING_PARAMS)
    own = {name: given[name] for name in RUN_PARAMS if given.get(name) not in (None, "")}
    conf = {"repeats": 5, **own, "mode": MODE}
    request = request_of(
        read_conf(conf, allowed=("mode", *RUN_PARAMS)),
        suite="",
        params_file="",
        dag_run=dag_run,
    )
    chosen = read_params(_SeriesConf, {name: given[name] for name in _SeriesConf.model_fields if name in given})
    series = Series(
        replace(request, mode=MODE),
        tuple(chosen.topologies or ()),
        chosen.batch_size_per_device,
        chosen.global_batch_size,
        chosen.precision,
        "time" if chosen.by_time else PRINTED,
        chosen.skip,
        chosen.take,
    )
    return series, conf

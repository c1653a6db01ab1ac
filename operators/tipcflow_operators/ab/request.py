"""Validates the params of the DAG `ab` and converts them to both versions and the limits of the comparison."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tipcflow.domain import ConfigError
from tipcflow.execute.ab.progress import Limits
from tipcflow.execute.request import RunRequest
from tipcflow_operators.tasks.request import param_error, read_conf, read_params, refuse_unknown, request_of
from tipcflow_operators.tasks.started_by import StartedRun

# Params of both sides' runs.
SHARED_PARAMS = ("suite", "params_file", "mode", "case", "cluster", "seed", "policy")
# Side -> param of a run -> param of this DAG.
SIDE_PARAMS = {
    side: {
        "suite_ref": side,
        "framework": f"framework_{side}",
        "framework_wheel": f"wheel_{side}",
        "framework_sha256": f"sha256_{side}",
    }
    for side in ("a", "b")
}
LIMIT_PARAMS = ("metric", "pairs", "max_pairs", "warm_up", "margin", "error", "budget_minutes")
AB_PARAMS = (*SHARED_PARAMS, *(name for names in SIDE_PARAMS.values() for name in names.values()), *LIMIT_PARAMS)


class _Bounds(BaseModel):
    """Params that set when a comparison ends; the bounds are those of the options of `tipcflow ab`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    metric: list[str] | None = None
    pairs: int = Field(default=0, ge=0)
    max_pairs: int = Field(default=20, ge=1)
    warm_up: int = Field(default=1, ge=0)
    margin: float = Field(default=0.02, ge=0, le=0.5)
    error: float = Field(default=0.02, ge=0.0001, le=0.2)
    budget_minutes: float = Field(default=0.0, ge=0)


@dataclass(frozen=True)
class AbRequest:
    """The request of a DAG run.

    Attributes:
        a, b: requests of the runs of each side.
        confs: side -> params of its runs of the DAG `certify`.
        names: metrics that are compared; none for all speeds.
    """

    a: RunRequest
    b: RunRequest
    confs: dict[str, dict[str, Any]]
    names: tuple[str, ...]
    limits: Limits


def ab_request(given: Mapping[str, Any], *, dag_run: StartedRun) -> AbRequest:
    """Return the validated request.

    Args:
        given: the DAG's params, overridden by those of this run.

    Raises:
        ConfigError: an unknown name or an invalid value, or the ID of the DAG run is reserved; names the param.
    """
    refuse_unknown(given, AB_PARAMS)
    requests, confs = {}, {}
    for side, names in SIDE_PARAMS.items():
        own = {name: given[param] for name, param in names.items() if given.get(param) not in (None, "")}
        shared = {name: given[name] for name in SHARED_PARAMS if given.get(name) not in (None, "")}
        conf = {**shared, **own}
        try:
            read = read_conf(conf, allowed=(*SHARED_PARAMS, *names))
        except ConfigError as error:
            raise param_error(error, names) from error
        requests[side] = request_of(read, suite="", params_file="", dag_run=dag_run)
        confs[side.upper()] = conf
    bounds = read_params(_Bounds, {name: given[name] for name in LIMIT_PARAMS if name in given})
    limits = Limits(
        bounds.error, bounds.margin, bounds.pairs, bounds.max_pairs, bounds.warm_up, bounds.budget_minutes * 60
    )
    return AbRequest(requests["a"], requests["b"], confs, tuple(bounds.metric or ()), limits)

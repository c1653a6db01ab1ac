"""Validates the params of the DAG `scaling` and converts them to a series of runs."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tipcflow.config.loader import message_and_expected
from tipcflow.domain import ConfigError
from tipcflow.execute.scaling.series import MODE, Series
from tipcflow.parse.scaling.speeds import PRINTED
from tipcflow_operators.tasks.request import read_conf, refuse_unknown, request_of

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
_OPTION = re.compile(r"--([a-z][a-z0-9-]*)")


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


def scaling_request(given: Mapping[str, Any], *, dag_id: str, dag_run_id: str) -> tuple[Series, dict[str, Any]]:
    """Return the series, and the params of its runs of the DAG `certify` without their case.

    Args:
        given: the DAG's params, overridden by those of this run.

    Raises:
        ConfigError: an unknown name or an invalid value; names the param.
    """
    refuse_unknown(given, SCALING_PARAMS)
    own = {name: given[name] for name in RUN_PARAMS if given.get(name) not in (None, "")}
    conf = {"repeats": 5, **own, "mode": MODE}
    request = request_of(
        read_conf(conf, allowed=("mode", *RUN_PARAMS)),
        suite="",
        params_file="",
        dag_id=dag_id,
        dag_run_id=dag_run_id,
    )
    chosen = _series_conf({name: given[name] for name in _SeriesConf.model_fields if name in given})
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


def param_error(error: ConfigError) -> ConfigError:
    """Return the error with this DAG's params in place of the CLI's options."""

    def named(text: str) -> str:
        """Return the text with params in place of options."""
        text = _OPTION.sub(lambda match: match[1].replace("-", "_"), text)
        return "topologies" if text == "topology" else text

    return ConfigError(
        named(error.what),
        file=error.file,
        line=error.line,
        key=named(error.key),
        found=named(error.found),
        expected=named(error.expected),
        hint=error.hint,
    )


def _series_conf(given: Mapping[str, Any]) -> _SeriesConf:
    try:
        return _SeriesConf.model_validate(dict(given))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        message, expected = message_and_expected(first)
        raise ConfigError(message, key=key, found=repr(first.get("input"))[:80], expected=expected) from error

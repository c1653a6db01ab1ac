"""A DAG run -> what is asked for: its params, checked, as a request."""

import difflib
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tipcflow.config.settings import settings
from tipcflow.domain import ConfigError
from tipcflow.execute.request import RunRequest
from tipcflow.plan import MODES

# What a DAG run may be asked for, whoever asks: the form of the UI, the weekly DAG, a pull request.
RUN_PARAMS = ("mode", "suite_ref", "framework", "cluster", "seed", "repeats", "diagnose", "policy")
CHAIN_PARAMS = ("suite", "params_file")


class Conf(BaseModel):
    """The params of a DAG run, as `resolve` accepts them."""

    model_config = ConfigDict(extra="forbid", strict=True)

    mode: str
    cluster: str = Field(min_length=1)
    suite_ref: str | None = None
    framework: str | None = None
    seed: int | None = None
    repeats: int = Field(default=1, ge=1, le=20)
    diagnose: bool = False
    policy: str = "pr"
    suite: str | None = None
    params_file: str | None = None


def read_conf(params: Mapping[str, Any], *, allowed: tuple[str, ...]) -> Conf:
    """The params, checked.

    Args:
        params: the DAG's params with what this run gave on top, also what no DAG knows.
        allowed: the names that this DAG has.

    Raises:
        ConfigError: an unknown name (the known ones are listed), or a value that cannot be.
    """
    for name in params:
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, 1)
            raise ConfigError(
                "unknown param",
                key=name,
                found=repr(params[name])[:80],
                expected=f"one of {', '.join(allowed)}",
                hint=f"did you mean {near[0]}?" if near else "",
            )
    try:
        conf = Conf.model_validate(dict(params))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(first["msg"], key=key, found=repr(first.get("input"))[:80]) from error
    if conf.mode not in MODES:
        raise ConfigError("unknown mode", key="mode", found=conf.mode, expected=f"one of {', '.join(MODES)}")
    return conf


def request_of(
    conf: Conf, *, suite: str, params_file: str, dag_id: str, dag_run_id: str, wait_s: float = 48 * 3600
) -> RunRequest:
    """The request of a DAG run.

    Args:
        suite, params_file: of the chain; those of `conf` win (the DAG `certify` has no chain of its own).
        wait_s: how long the run may wait for slots.

    Raises:
        ConfigError: neither names a chain.
    """
    suite, params_file = conf.suite or suite, conf.params_file or params_file
    for key, value in (("suite", suite), ("params_file", params_file)):
        if not value:
            raise ConfigError("is needed: this DAG has no chain of its own", key=key, expected="a name")
    return RunRequest(
        params=params_file,
        suite=suite,
        mode=conf.mode,
        cluster=conf.cluster,
        config_dir=settings().config_dir,
        suite_ref=conf.suite_ref or None,
        framework=conf.framework or "",
        seed=conf.seed,
        repeats=conf.repeats,
        diagnose=conf.diagnose,
        policy=conf.policy,
        wait_s=wait_s,
        trigger=trigger_of(dag_run_id),
        owner=f"airflow {dag_id} {dag_run_id}",
    )


def trigger_of(dag_run_id: str) -> str:
    """Who started a DAG run, from the first part of its id: `manual`, `weekly`, `ci`, `demo` …"""
    first, separator, _ = dag_run_id.partition("__")
    return first if separator else "airflow"

"""A DAG run -> what is asked for: its params, checked, as a request."""

import difflib
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tipcflow.config.settings import settings
from tipcflow.domain import ConfigError
from tipcflow.execute.request import RunRequest
from tipcflow.plan import ALL_MODES

# What a DAG run may be asked for, whoever asks: the form of the UI, the weekly DAG, a pull request.
RUN_PARAMS = ("mode", "suite_ref", "base", "framework", "cluster", "seed", "repeats", "diagnose", "policy")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
CHAIN_PARAMS = ("suite", "params_file")


class Conf(BaseModel):
    """The params of a DAG run, as `resolve` accepts them."""

    model_config = ConfigDict(extra="forbid", strict=True)

    mode: str
    cluster: str = Field(min_length=1)
    suite_ref: str | None = None
    base: str | None = None
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
                expected=f"one of {', '.join(allowed)}",
                hint=f"did you mean {near[0]}?" if near else "",
            )
    try:
        conf = Conf.model_validate(dict(params))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        raise ConfigError(first["msg"], key=key, found=repr(first.get("input"))[:80]) from error
    if conf.mode not in ALL_MODES:
        raise ConfigError("unknown mode", key="mode", found=conf.mode, expected=f"one of {', '.join(ALL_MODES)}")
    _check_names(conf)
    return conf


def _check_names(conf: Conf) -> None:
    """Only files that belong to us are read: an error may quote what it found in one.

    Raises:
        ConfigError: a suite or cluster that is no name, or a params file that is none of the suite's.
    """
    if conf.suite is not None and not _NAME.fullmatch(conf.suite):
        raise ConfigError("is not a name", key="suite", found=conf.suite, expected="a name in configs/suites")
    home = settings().home.resolve()
    if not _NAME.fullmatch(conf.cluster) and not Path(conf.cluster).resolve().is_relative_to(home):
        raise ConfigError(
            "is not a name", key="cluster", found=conf.cluster, expected="a name in configs/clusters"
        )
    path = PurePosixPath(conf.params_file or "")
    if path.is_absolute() or ".." in path.parts:
        raise ConfigError(
            "must be a file of the suite",
            key="params_file",
            found=str(path),
            expected="a path relative to the suite's root, or <folder>/<name>",
        )


def request_of(conf: Conf, *, suite: str, params_file: str, dag_id: str, dag_run_id: str) -> RunRequest:
    """The request of a DAG run.

    Args:
        suite, params_file: of the chain; those of `conf` win (the DAG `certify` has no chain of its own).

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
        base=conf.base or None,
        framework=conf.framework or "",
        seed=conf.seed,
        repeats=conf.repeats,
        diagnose=conf.diagnose,
        policy=conf.policy,
        only_inside=True,
        trigger=trigger_of(dag_run_id),
        owner=f"airflow {dag_id} {dag_run_id}",
    )


def trigger_of(dag_run_id: str) -> str:
    """Who started a DAG run, from the first part of its id: `manual`, `weekly`, `ci`, `demo` …"""
    first, separator, _ = dag_run_id.partition("__")
    return first if separator else "airflow"

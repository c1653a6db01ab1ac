"""Validates the params of the DAG `bisect` and converts them to a search and the params of its runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tipcflow.domain import PartKey
from tipcflow.domain.errors import KEYS_SEPARATOR, ConfigError
from tipcflow.domain.run.names import ChainName
from tipcflow.execute.bisection.builds import Build, parse_builds
from tipcflow.execute.bisection.commits import Commit
from tipcflow.execute.bisection.ends import check_given
from tipcflow.execute.bisection.subject import Subject
from tipcflow.execute.request import RunRequest
from tipcflow.execute.source.wheel import check_source
from tipcflow_operators.tasks.request import (
    REF_PATTERN,
    param_error,
    read_conf,
    read_params,
    refuse_unknown,
    request_of,
)
from tipcflow_operators.tasks.started_by import StartedRun

# Params of all runs of a search.
SHARED_PARAMS = (
    "suite",
    "params_file",
    "mode",
    "case",
    "cluster",
    "seed",
    "policy",
    "framework",
    "framework_wheel",
    "framework_sha256",
)
SEARCH_PARAMS = (
    "good",
    "bad",
    "builds",
    "suite_ref",
    "metric",
    "step",
    "leg",
    "confidence",
    "max_runs",
    "budget_minutes",
    "parallel",
    "run",
)
BISECT_PARAMS = (*SHARED_PARAMS, *SEARCH_PARAMS)


class _Search(BaseModel):
    """Params that describe the search; the bounds are those of the options of `tipcflow bisect`."""

    model_config = ConfigDict(extra="forbid", strict=True)

    good: str = Field(default="", pattern=REF_PATTERN)
    bad: str = Field(default="", pattern=REF_PATTERN)
    builds: list[str] | None = None
    suite_ref: str = Field(default="", pattern=REF_PATTERN)
    metric: str = Field(min_length=1)
    step: str = ""
    leg: str = ""
    confidence: float = Field(default=0.95, ge=0.5, le=0.999)
    max_runs: int = Field(default=40, ge=0)
    budget_minutes: float = Field(default=0.0, ge=0)
    parallel: int = Field(default=1, ge=1, le=8)
    run: str = ""


@dataclass(frozen=True)
class BisectRequest:
    """The request of a DAG run.

    Attributes:
        base: request of a run, without a version.
        conf: params of the runs of the DAG `certify`, without a version.
        good, bad: refs; '' with `builds`.
        builds: framework builds, oldest first; empty for a search over commits.
        budget_s: maximum duration of all runs together; 0 for none.
        run: run with which the result is stored, '' for one of the search.
    """

    base: RunRequest
    conf: Mapping[str, Any]
    subject: Subject
    good: str
    bad: str
    builds: tuple[Build, ...]
    confidence: float
    max_runs: int
    budget_s: float
    parallel: int
    run: str

    def conf_of(self, version: Commit | Build, suite_commit: str, part: Iterable[PartKey] = ()) -> dict[str, Any]:
        """Return the params of a run with a version.

        Args:
            suite_commit: commit of the suite in a search over builds; '' for its working tree.
            part: steps that the run executes, with those that they need; empty for all.
        """
        only = {"only": texts} if (texts := list(map(str, part))) else {}
        if isinstance(version, Commit):
            return {**self.conf, **only, "suite_ref": version.id}
        known = {
            "suite_ref": suite_commit,
            "framework": version.requirement,
            "framework_wheel": version.wheel,
            "framework_sha256": version.sha256,
        }
        return {**self.conf, **only, **{name: value for name, value in known.items() if value}}


def bisect_request(given: Mapping[str, Any], *, dag_run: StartedRun) -> BisectRequest:
    """Return the validated request.

    Args:
        given: the DAG's params, overridden by those of this run.

    Raises:
        ConfigError: an unknown name or an invalid value, or the ID of the DAG run is reserved; names the param.
    """
    refuse_unknown(given, BISECT_PARAMS)
    conf = {name: given[name] for name in SHARED_PARAMS if given.get(name) not in (None, "")}
    base = request_of(read_conf(conf, allowed=SHARED_PARAMS), suite="", params_file="", dag_run=dag_run)
    search = read_params(_Search, {name: given[name] for name in SEARCH_PARAMS if given.get(name) is not None})
    builds = _builds(search, conf)
    if search.suite_ref:
        base = replace(base, suite_ref=search.suite_ref)
    chain = str(ChainName.of_file(base.suite, base.params))
    subject = Subject(chain, base.mode, base.compat.value, search.metric, search.step, search.leg)
    return BisectRequest(
        base,
        conf,
        subject,
        search.good,
        search.bad,
        builds,
        search.confidence,
        search.max_runs,
        search.budget_minutes * 60,
        search.parallel,
        search.run,
    )


def _builds(search: _Search, conf: Mapping[str, Any]) -> tuple[Build, ...]:
    """Return the builds of the search, checked without reading their wheels; none for a search over commits."""
    lines = search.builds or []
    try:
        check_given(search.good, search.bad, search.suite_ref, has_builds=bool(lines))
    except ConfigError as error:
        raise param_error(error) from error
    if not lines:
        return ()
    given = [name for name in ("framework", "framework_wheel", "framework_sha256") if name in conf]
    if given:
        key = KEYS_SEPARATOR.join(given)
        raise ConfigError("is that of each run with `builds`", key=key, expected="not given")
    builds = parse_builds(lines, "builds")
    for build in builds:
        try:
            check_source(build.wheel, build.sha256, only_names=True)
        except ConfigError as error:
            raise ConfigError(error.what, key="builds", found=error.found, expected=error.expected) from error
    return builds

"""Validates the params of a DAG run and converts them to a run request."""

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, TypeVar

from airflow.sdk import Context
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tipcflow.config.loader import message_and_expected
from tipcflow.config.settings import settings
from tipcflow.domain import ConfigError, PartKey
from tipcflow.domain.errors import KEYS_SEPARATOR
from tipcflow.domain.numbers.seed import LARGEST_SEED, SMALLEST_SEED
from tipcflow.domain.numbers.units import first_names
from tipcflow.domain.run.names import ModeName
from tipcflow.domain.triggers import AB, BISECT
from tipcflow.execute.request import RunRequest
from tipcflow.execute.source.wheel import check_source
from tipcflow.plan import ALL_MODES
from tipcflow_operators.tasks.started_by import StartedRun, trigger_of

# Params of a DAG run from any source: the UI's form, the weekly DAG, a pull request.
RUN_PARAMS = (
    "mode",
    "suite_ref",
    "base",
    "framework",
    "framework_wheel",
    "framework_sha256",
    "cluster",
    "seed",
    "repeats",
    "diagnose",
    "drop",
    "policy",
)
# The form and `resolve` accept the same texts. '' counts as not given.
REF_PATTERN = r"^([^\s\-]\S*)?$"
_VERSION = r"(===?|~=|!=|<=?|>=?)\s*v?[0-9][A-Za-z0-9.*+!_\-]*"
FRAMEWORK_PATTERN = (
    r"^([A-Za-z0-9]([A-Za-z0-9._\-]*[A-Za-z0-9])?(\[[A-Za-z0-9,._ \-]+\])?"
    rf"(\s*{_VERSION}(\s*,\s*{_VERSION})*)?)?$"
)
# No address with a login: Airflow stores and shows the params of a DAG run.
WHEEL_PATTERN = r"^(?!https?:\/\/[^\/?#]*@)"
_EXPECTED = {
    "suite_ref": "a branch, tag or commit",
    "base": "a branch or commit",
    "framework": "a name with versions, as in paddlepaddle==3.3.1",
    "nodes_of": "a run ID",
    "lease_to": "a run ID",
    "case": "a case of a benchmark, as in dynamic_bs8_fp32_DP_N1C2",
}
NODES_OF_PATTERN = r"^([a-z0-9][a-z0-9_.\-]{0,127})?$"
# Options whose param has another name.
_PARAMS = {"--sha256": "framework_sha256"}
_NO_NAMES: Mapping[str, str] = {}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_DEMO_ID = re.compile(r"[0-9a-f]+")
CASE_PATTERN = r"^([A-Za-z0-9][A-Za-z0-9_.,\-]{0,199})?$"
CHAIN_PARAMS = ("suite", "params_file", "case", "only", "nodes_of", "lease_to")

_Model = TypeVar("_Model", bound=BaseModel)


def given_params(context: Context) -> dict[str, Any]:
    """Return the params of the DAG, overridden by those of this DAG run."""
    return {**context["params"], **(context["dag_run"].conf or {})}


class Conf(BaseModel):
    """Validated params of a DAG run."""

    model_config = ConfigDict(extra="forbid", strict=True)

    mode: str
    cluster: str = Field(min_length=1)
    suite_ref: str | None = Field(default=None, pattern=REF_PATTERN)
    base: str | None = Field(default=None, pattern=REF_PATTERN)
    framework: str | None = Field(default=None, pattern=FRAMEWORK_PATTERN)
    framework_wheel: str | None = None
    framework_sha256: str | None = None
    seed: int | None = Field(default=None, ge=SMALLEST_SEED, le=LARGEST_SEED)
    repeats: int = Field(default=1, ge=1, le=20)
    diagnose: bool = False
    drop: list[str] | None = None
    policy: str = "pr"
    suite: str | None = None
    params_file: str | None = None
    only: list[Annotated[str, Field(min_length=1)]] | None = None
    nodes_of: str | None = Field(default=None, pattern=NODES_OF_PATTERN)
    lease_to: str | None = Field(default=None, pattern=NODES_OF_PATTERN)
    case: str | None = Field(default=None, pattern=CASE_PATTERN)


def read_conf(params: Mapping[str, Any], *, allowed: tuple[str, ...]) -> Conf:
    """Return the validated params.

    Args:
        params: the DAG's params, overridden by those of this run, including unknown names.
        allowed: param names of this DAG.

    Raises:
        ConfigError: an unknown name (the message lists the known ones) or an invalid value.
    """
    refuse_unknown(params, allowed)
    try:
        conf = Conf.model_validate(dict(params))
    except ValidationError as error:
        raise _first_error(error) from error
    if conf.mode not in ALL_MODES:
        raise ConfigError("unknown mode", key="mode", found=conf.mode, expected=f"one of {', '.join(ALL_MODES)}")
    check_source(conf.framework_wheel or "", conf.framework_sha256 or "", only_names=True)
    check_names(suite=conf.suite, cluster=conf.cluster, policy=conf.policy)
    _check_params_file(conf.params_file or "")
    return conf


def read_params(model: type[_Model], given: Mapping[str, Any]) -> _Model:
    """Return validated params of a DAG that are not those of a run.

    Raises:
        ConfigError: an invalid value.
    """
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        raise _first_error(error) from error


def _first_error(error: ValidationError) -> ConfigError:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    is_rule = first["type"] in ("string_pattern_mismatch", "greater_than_equal")
    message, expected = message_and_expected(first)
    if is_rule and key in _EXPECTED:
        message, expected = "invalid value", _EXPECTED[key]
    shown = "" if first["type"] == "missing" else repr(first.get("input"))[:80]
    return ConfigError(message, key=key, found=shown, expected=expected)


def param_error(error: ConfigError, names: Mapping[str, str] = _NO_NAMES) -> ConfigError:
    """Return an error of code that the CLI shares, with the DAG's params as its key.

    Args:
        names: option of the CLI or param of a run -> param of the DAG, where they differ by more than dashes.
    """
    keys = [names.get(key) or _param_of(key, names) for key in error.key.split(KEYS_SEPARATOR)]
    return ConfigError(
        error.what,
        file=error.file,
        line=error.line,
        key=KEYS_SEPARATOR.join(keys),
        found=error.found,
        expected=error.expected,
        hint=error.hint,
    )


def _param_of(key: str, names: Mapping[str, str]) -> str:
    """Return the param of a run for an option, and the DAG's name for it; other keys are not changed."""
    if not key.startswith("--"):
        return key
    param = _PARAMS.get(key) or key.removeprefix("--").replace("-", "_")
    return names.get(param, param)


def refuse_unknown(params: Iterable[str], allowed: Sequence[str]) -> None:
    """Refuse names that are not params of the DAG.

    Raises:
        ConfigError: an unknown name; the message lists the known ones.
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


def check_names(*, suite: str | None, cluster: str, policy: str) -> None:
    """Reject configuration files outside TIPCFLOW_CONFIG_DIR, which only administrators can write.

    A cluster file names the connections, interpreters and folders that a run uses, so a user who triggers a run
    must not choose an arbitrary file: files fetched from nodes are also below TIPCFLOW_HOME.

    Raises:
        ConfigError: a suite, cluster or policy is given by path. The cluster file of a running demo is the
            exception.
    """
    given = {"suite": suite, "cluster": cluster, "policy": policy}
    for key, folder in (("suite", "suites"), ("cluster", "clusters"), ("policy", "policies")):
        name = given[key]
        if name is None or _is_name(name) or (key == "cluster" and _is_demo_cluster(name)):
            continue
        raise ConfigError(
            "must be a name, not a path", key=key, found=name, expected=f"a name in configs/{folder}"
        )


def _is_name(text: str) -> bool:
    """Whether the text can only be a name: a text like `x.yaml` would be opened from the current folder first."""
    return _NAME.fullmatch(text) is not None and not text.endswith((".yaml", ".yml"))


def _is_demo_cluster(path: str) -> bool:
    """Whether the path is `<TIPCFLOW_HOME>/nodes/<id>/cluster.yaml`, without symbolic links or `..`."""
    nodes = settings().home.resolve() / "nodes"
    file = Path(path)
    if file.name != "cluster.yaml" or not _DEMO_ID.fullmatch(file.parent.name):
        return False
    exact = nodes / file.parent.name / "cluster.yaml"
    return ".." not in file.parts and file.parent.parent.resolve() == nodes and file.resolve() == exact


def _check_params_file(given: str) -> None:
    path = PurePosixPath(given)
    if path.is_absolute() or ".." in path.parts:
        raise ConfigError(
            "must be a file of the suite",
            key="params_file",
            found=str(path),
            expected="a path relative to the suite's root, or <folder>/<name>",
        )


def request_of(
    conf: Conf, *, suite: str, params_file: str, dag_run: StartedRun, trigger: str | None = None
) -> RunRequest:
    """Return the request of a DAG run.

    Args:
        suite, params_file: of the chain; `conf` takes precedence (the DAG `certify` has no chain of its own).
        trigger: what started the DAG run; None: as its ID states.

    Raises:
        ConfigError: neither names a chain, `only` names steps of a run that is not one of a bisection, `lease_to`
            is set for one that is not of an A/B comparison, or the DAG run has a reserved ID.
    """
    suite, params_file = conf.suite or suite, conf.params_file or params_file
    for key, value in (("suite", suite), ("params_file", params_file)):
        if not value:
            raise ConfigError("required: this DAG has no chain of its own", key=key, expected="a name")
    trigger = trigger_of(dag_run) if trigger is None else trigger
    if conf.only and trigger != BISECT:
        # Steps that a run leaves out have no status: its verdict must not be that of the chain.
        raise ConfigError(
            "only the runs of a bisection leave steps out",
            key="only",
            found=first_names(conf.only),
            expected="no value: a run executes all steps of its chain",
        )
    if conf.lease_to and trigger != AB:
        # The named run would exist before its own request, with the mode and trigger of this one.
        raise ConfigError(
            "only the runs of an A/B comparison hand over their leases",
            key="lease_to",
            found=conf.lease_to,
            expected="no value",
        )
    return RunRequest(
        params=params_file,
        suite=suite,
        mode=str(ModeName(conf.mode, conf.case or "")),
        cluster=conf.cluster,
        config_dir=settings().config_dir,
        suite_ref=conf.suite_ref or None,
        base=conf.base or None,
        framework=conf.framework or "",
        framework_wheel=conf.framework_wheel or "",
        framework_sha256=conf.framework_sha256 or "",
        seed=conf.seed,
        repeats=conf.repeats,
        diagnose=conf.diagnose,
        drop=tuple(conf.drop or ()),
        only=tuple(map(PartKey, conf.only or ())),
        policy=conf.policy,
        nodes_of=conf.nodes_of or "",
        lease_to=conf.lease_to or "",
        only_inside=True,
        trigger=trigger,
        owner=f"airflow {dag_run.dag_id} {dag_run.run_id}",
    )

"""The form that starts an A/B comparison of a chain: the DAG `ab`."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form, HTTPException, Request
from fastapi.responses import RedirectResponse, Response

from tipcflow.config.cluster import load_cluster
from tipcflow.domain import ConfigError, Plan, Run
from tipcflow.domain.errors import KEYS_SEPARATOR
from tipcflow.domain.run.names import ModeName
from tipcflow.domain.triggers import AB
from tipcflow.execute.ab.metrics import check_names
from tipcflow.execute.ab.progress import Limits
from tipcflow.execute.ab.sides import check_limits, check_sides
from tipcflow.execute.chain.measured import chain_metrics
from tipcflow.execute.request import RequestDocument, RunRequest
from tipcflow.execute.verdict.judge import load_policy
from tipcflow_operators.airflow.internals import GetUserDep, action_logging
from tipcflow_pages.data.data import SettingsDep, StoreDep
from tipcflow_pages.web.render import HEADERS, html, root_of
from tipcflow_pages.web.trigger import may_trigger, same_origin, trigger

router = APIRouter()
_DAG = "ab"
# Of runs without a stored request.
_POLICY = "pr"
# Options of the CLI, which the shared checks name, and their fields.
_FIELDS = {
    "--a": "Ref of A",
    "--b": "Ref of B",
    "--framework-a": "Framework of A",
    "--framework-b": "Framework of B",
    "--metric": "Metrics",
    "--pairs": "Pairs",
    "--max-pairs": "Maximum pairs",
}
_LONGEST = 200
Text = Annotated[str, Form(max_length=_LONGEST, pattern=r"^[^\x00]*$")]


def _may_start(request: Request, user: GetUserDep) -> None:
    """A dependency: 403 for a user who may not start runs of the DAG."""
    if not may_trigger(request, user, _DAG):
        raise HTTPException(403, f"starting a comparison requires permission to trigger the DAG {_DAG}")


@dataclass(frozen=True)
class Choice:
    """What the user has chosen, as the form has it."""

    a: str = ""
    b: str = ""
    framework_a: str = ""
    framework_b: str = ""
    cluster: str = ""
    metric: str = ""
    pairs: str = "0"
    max_pairs: str = "20"

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics to compare; none for all speeds."""
        return tuple(self.metric.replace(",", " ").split())


@dataclass(frozen=True)
class _Chain:
    """The chain of a run, with what its comparison takes over."""

    run: Run
    plan: Plan
    policy: str
    clusters: tuple[str, ...]


@router.get("/ab/new")
def form(request: Request, user: GetUserDep, store: StoreDep, chosen: SettingsDep, run: str) -> Response:
    """Return the form for the chain of a run; its commit is A."""
    chain = _chain(store, chosen, run)
    commit = chain.run.suite_commit
    choice = Choice(a="" if "+" in commit else commit, cluster=chain.clusters[0])
    return _page(request, user, chain, choice)


@router.post(
    "/ab/new", dependencies=[Depends(_may_start), Depends(same_origin), Depends(action_logging("tipcflow_ab"))]
)
def start(
    request: Request,
    user: GetUserDep,
    store: StoreDep,
    chosen: SettingsDep,
    run: Text,
    a: Text = "",
    b: Text = "",
    framework_a: Text = "",
    framework_b: Text = "",
    cluster: Text = "",
    metric: Text = "",
    pairs: Text = "0",
    max_pairs: Text = "20",
) -> Response:
    """Start the comparison and send to the page A/B; an invalid value is one message above the form."""
    chain = _chain(store, chosen, run)
    words = (a, b, framework_a, framework_b, cluster, metric, pairs, max_pairs)
    choice = Choice(*(word.strip() for word in words))
    try:
        check_names(choice.metrics, chain_metrics(store, chain.run.chain, chain.run.mode, chain.run.compat))
        conf = _checked(chain, choice, chosen)
    except ConfigError as error:
        return _page(request, user, chain, choice, problem=_named(error))
    started = trigger(request, user, _DAG, conf, note=f"Certification, run {chain.run.id}")
    query = urlencode({"started": started})
    return RedirectResponse(f"{root_of(request)}/ab?{query}", status_code=303, headers=HEADERS)


def _chain(store: StoreDep, chosen: SettingsDep, run_id: str) -> _Chain:
    run, plan = store.runs.get_or_none(run_id), store.plans.get_or_none(run_id)
    if run is None:
        raise HTTPException(404, f"no such run: {run_id}")
    kept = store.documents.get(run_id, RequestDocument)  # generated runs have none
    if plan is None:
        raise HTTPException(404, f"run {run_id} ended before it had a plan: choose another run of the chain")
    names = sorted(path.stem for path in (chosen.config_dir / "clusters").glob("*.yaml"))
    clusters = tuple(dict.fromkeys((kept.root.cluster if kept else run.cluster, *names)))
    return _Chain(run, plan, kept.root.policy if kept else _POLICY, clusters)


def _checked(chain: _Chain, choice: Choice, chosen: SettingsDep) -> dict[str, Any]:
    """Return the params of the DAG.

    Raises:
        ConfigError: a value is invalid; names the option of the CLI.
    """
    mode = ModeName.parse(chain.run.mode)
    limits = Limits(
        pairs=_number(choice.pairs, "--pairs", 0), most_pairs=_number(choice.max_pairs, "--max-pairs", 1)
    )
    if choice.cluster not in chain.clusters:
        expected = f"one of {', '.join(chain.clusters)}"
        raise ConfigError("unknown cluster", key="Cluster", found=choice.cluster, expected=expected)
    check_limits(limits)
    load_cluster(choice.cluster, chosen.config_dir)
    load_policy(chain.policy, chosen.config_dir)
    base = RunRequest(
        params=chain.plan.params_file,
        suite=chain.run.suite,
        mode=chain.run.mode,
        cluster=choice.cluster,
        config_dir=chosen.config_dir,
        policy=chain.policy,
        trigger=AB,
    )
    check_sides(
        replace(base, suite_ref=choice.a or None, framework=choice.framework_a),
        replace(base, suite_ref=choice.b or None, framework=choice.framework_b),
        Path(chosen.home),
    )
    given = {
        "suite": chain.run.suite,
        "params_file": chain.plan.params_file,
        "mode": mode.mode,
        "case": mode.case,
        "cluster": choice.cluster,
        "policy": chain.policy,
        "a": choice.a,
        "b": choice.b,
        "framework_a": choice.framework_a,
        "framework_b": choice.framework_b,
        "metric": list(choice.metrics),
    }
    known = {name: value for name, value in given.items() if value}
    return {**known, "pairs": limits.pairs, "max_pairs": limits.most_pairs}


def _number(text: str, key: str, least: int) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 4 and int(text) >= least):
        raise ConfigError("is not a number of pairs", key=key, found=text, expected=f"{least} to 9999")
    return int(text)


def _named(error: ConfigError) -> str:
    """Return the message with the names of the form's fields."""
    keys = [_FIELDS.get(key, key) for key in error.key.split(KEYS_SEPARATOR)]
    own = ConfigError(
        error.what, key=KEYS_SEPARATOR.join(filter(None, keys)), found=error.found, expected=error.expected
    )
    return own.message


def _page(request: Request, user: GetUserDep, chain: _Chain, choice: Choice, *, problem: str = "") -> Response:
    return html(
        request,
        "ab_new.html",
        status=422 if problem else 200,
        title="Compare A/B - Certification",
        chain=chain,
        choice=choice,
        problem=problem,
        allowed=may_trigger(request, user, _DAG),
    )

"""JSON API with the models of `tipcflow.report.api`, which the client of `tipcflow trigger` shares.

The client sends the token with which it triggered the run.
"""

import json
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import Response
from pydantic import BaseModel

from tipcflow.config.settings import settings
from tipcflow.domain import ConfigError, Leg, LegKey, Step
from tipcflow.execute.changes import chains_of_build, requested_build
from tipcflow.execute.verdict.run_data import readable_plan
from tipcflow.report import leg_rows, markdown, step_rows
from tipcflow.report.api import (
    BuildRun,
    BuildRuns,
    CurveFacts,
    Curves,
    LegFacts,
    RunFacts,
    RunList,
    StepFacts,
)
from tipcflow.report.canonical import plain
from tipcflow.report.curves import counted_iterations, curve
from tipcflow.report.rows import LegRow, StepRow
from tipcflow.report.run.data import RunData
from tipcflow.report.text.names import short_step
from tipcflow.store.queries.pages import LossPoint, RunFilter
from tipcflow_pages.data.data import StoreDep, run_data
from tipcflow_pages.web.render import HEADERS

router = APIRouter(prefix="/api")
_DECLARED = ("device", "onednn", "tensorrt", "precision", "threads", "batch_size")


@router.get("/runs", response_model=RunList)
def list_runs(
    store: StoreDep,
    chain: str = "",
    status: str = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> Response:
    """Return runs, newest first; `reason` is truncated as in lists. `total` is the number of all matches."""
    page = store.pages.runs(RunFilter(chain=chain, status=status), limit=limit)
    return _json(RunList(runs=tuple(page.rows), total=page.total))


@router.get("/runs/{run_id}/curves", response_model=Curves)
def loss_curves(run_id: str, store: StoreDep) -> Response:
    """Return the training losses of each rank, downsampled for a chart."""
    plan, _ = readable_plan(store, run_id)
    ranks: dict[tuple[str, str, int], list[LossPoint]] = {}
    for point in store.pages.losses(run_id):
        ranks.setdefault((point.step, point.node, point.rank), []).append(point)
    curves = []
    for (step, node, rank), points in ranks.items():
        drawn = curve(_name(node, rank), [point.value for point in points])
        every = counted_iterations([(point.epoch, point.iteration) for point in points])
        iterations = tuple(every[int(x)] for x in drawn.x) if every else ()
        curves.append(CurveFacts(step=step, short=short_step(plan, step), iterations=iterations, **vars(drawn)))
    return _json(Curves(curves=tuple(curves)))


def _name(node: str, rank: int) -> str:
    return f"rank {rank} on {node}" if rank >= 0 else node


@router.get("/runs/{run_id}", response_model=RunFacts)
def one_run(run_id: str, store: StoreDep) -> Response:
    """Return a run with checks, steps, legs and certificate; nan and inf are the strings `nan`, `inf`, `-inf`."""
    return _json(run_facts(run_data(store, run_id)))


@router.get("/builds", response_model=BuildRuns)
def build_runs(framework: str = "", framework_wheel: str = "", framework_sha256: str = "") -> Response:
    """Return the runs that certify a framework build, by configs/repositories; 422 with the reason otherwise.

    The parameters are the params of a run with the same names.
    """
    known = settings()
    try:
        build = requested_build(
            framework, framework_wheel, framework_sha256, home=known.home, hosts=known.wheel_hosts
        )
        chains = chains_of_build(build.name, known.config_dir)
    except ConfigError as error:
        raise HTTPException(422, error.message) from error
    runs = tuple(BuildRun(**vars(chain)) for chain in chains)
    return _json(BuildRuns(framework=f"{build.name} {build.label}", runs=runs))


def run_facts(data: RunData) -> RunFacts:
    """The run as the API's model."""
    steps = {row.step: row for row in step_rows(data.facts)}
    legs = {(row.step, row.leg): row for row in leg_rows(data.facts)}
    planned = data.facts.plan.steps
    verdict = markdown(data.facts, data.run, data.checks, neutral=data.neutral)
    return RunFacts(
        run=data.run,
        neutral=data.neutral,
        confirming=data.confirmation if data.waits_for_confirmation else None,
        checks=data.checks,
        steps=tuple(_step(data, step, steps[step.id]) for step in planned),
        legs=tuple(_leg(data, step, leg, legs[step.id, leg.id]) for step in planned for leg in step.legs),
        certificate=data.certificate,
        verdict_markdown=verdict if data.run.status is not None else None,
    )


def _step(data: RunData, step: Step, row: StepRow) -> StepFacts:
    return StepFacts(
        id=step.id,
        kind=step.kind,
        status=data.status_word(LegKey(step.id), row.status),
        reason=row.reason,
        nodes=step.nodes,
        seconds=row.seconds,
        attempts=data.last[step.id].attempt if step.id in data.last else 0,
    )


def _leg(data: RunData, step: Step, leg: Leg, row: LegRow) -> LegFacts:
    return LegFacts(
        step=step.id,
        id=leg.id,
        status=data.status_word(LegKey(step.id, leg.id), row.status),
        reason=row.reason,
        settings=row.settings,
        declared={name: getattr(leg, name) for name in _DECLARED},
        latency_ms=row.latency_ms,
    )


def _json(content: BaseModel) -> Response:
    """Return strict ASCII JSON: no NaN, and no characters that cannot be encoded."""
    return Response(json.dumps(plain(content), allow_nan=False), media_type="application/json", headers=HEADERS)

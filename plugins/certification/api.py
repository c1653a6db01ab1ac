"""JSON API; `tipcflow trigger` reads runs from it, with the token that it triggered with."""

import json
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query
from fastapi.responses import Response

from certification.data.data import StoreDep
from certification.data.run_data import Story, read_story, readable_plan
from certification.web.render import HEADERS
from tipcflow.cli.output.names import short_step
from tipcflow.domain import Leg, Status, Step
from tipcflow.report import markdown, step_rows
from tipcflow.report.canonical import plain
from tipcflow.report.curves import curve
from tipcflow.report.rows import settings
from tipcflow.report.sections import leg_status
from tipcflow.store.queries.pages import Wanted

router = APIRouter(prefix="/api")
_DECLARED = ("device", "onednn", "tensorrt", "precision", "threads", "batch_size")


@router.get("/runs")
def list_runs(
    store: StoreDep,
    chain: str = "",
    status: str = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
) -> Response:
    """Return runs, newest first; `reason` is truncated as in lists. `total` is the number of all matches."""
    found = store.runs_page(Wanted(chain=chain, status=status), limit=limit)
    return _json({"runs": found.rows, "total": found.total})


@router.get("/runs/{run_id}/curves")
def loss_curves(run_id: str, store: StoreDep) -> Response:
    """Return the training losses of each rank, downsampled for a chart."""
    plan, _ = readable_plan(store, run_id)
    ranks: dict[tuple[str, str, int], list[float]] = {}
    for point in store.losses(run_id):
        ranks.setdefault((point.step, point.node, point.rank), []).append(point.value)
    curves = [
        {"step": step, "short": short_step(plan, step), **vars(curve(_name(node, rank), values))}
        for (step, node, rank), values in ranks.items()
    ]
    return _json({"curves": curves})


def _name(node: str, rank: int) -> str:
    return f"rank {rank} on {node}" if rank >= 0 else node


@router.get("/runs/{run_id}")
def one_run(run_id: str, store: StoreDep) -> Response:
    """Return a run with checks, steps, legs and certificate; nan and inf are the strings `nan`, `inf`, `-inf`."""
    story = read_story(store, run_id)
    if story is None:
        raise HTTPException(404, f"no such run: {run_id}")
    judged = story.run.status is not None
    told = {
        "run": story.run,
        "neutral": story.neutral,
        "confirming": vars(story.confirmation) if story.waits_for_confirmation else None,
        "checks": story.checks,
        "steps": _steps(story),
        "legs": [_leg(story, step, leg) for step in story.facts.plan.steps for leg in step.legs],
        "certificate": story.certificate,
        "verdict_markdown": _markdown(story) if judged else None,
    }
    return _json(told)


def _markdown(story: Story) -> str:
    return markdown(story.facts, story.run, story.checks, neutral=story.neutral)


def _json(told: dict[str, Any]) -> Response:
    """Return strict ASCII JSON: no NaN, and no characters that cannot be encoded."""
    return Response(json.dumps(plain(told), allow_nan=False), media_type="application/json", headers=HEADERS)


def _steps(story: Story) -> list[dict[str, Any]]:
    rows = {row.step: row for row in step_rows(story.facts)}
    return [
        {
            "id": step.id,
            "kind": step.kind,
            "status": story.said(step.id, rows[step.id].status),
            "reason": rows[step.id].reason,
            "nodes": step.nodes,
            "seconds": rows[step.id].seconds,
            "attempts": story.last[step.id].attempt if step.id in story.last else 0,
        }
        for step in story.facts.plan.steps
    ]


def _leg(story: Story, step: Step, leg: Leg) -> dict[str, Any]:
    key = f"{step.id}/{leg.id}"
    status: Status = leg_status(story.facts, step, leg)
    return {
        "step": step.id,
        "id": leg.id,
        "status": story.said(key, status),
        "reason": story.facts.step_reason.get(key) or leg.not_run or step.not_run,
        "settings": settings(leg),
        "declared": {name: getattr(leg, name) for name in _DECLARED},
        "latency_ms": story.medians.get((step.id, leg.id, "inference_time")),
    }

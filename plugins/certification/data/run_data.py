"""Data of a run's page and JSON, read once."""

import json
import time
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from tipcflow.domain import Attempt, CheckResult, Compat, Facts, Measurement, Phase, Plan, Run, Status
from tipcflow.domain.run.failure import FAILURES, Failure, failure_before, failures_of
from tipcflow.execute.verdict.conclusion import is_neutral
from tipcflow.execute.verdict.confirm import Asked, asked_of
from tipcflow.report.meaning import WHY
from tipcflow.store.queries.readonly import ReadonlyStore


@dataclass(frozen=True)
class Story:
    """A run. `facts` contains no raw samples; its measurements are one median latency per leg.

    Attributes:
        plan: None if the run ended before it had one, or if this version cannot read it (`plan_problem`).
        before: failure of a node before the first step.
        medians: (step, leg, metric) -> median of the last attempt.
        confirmation: the request for a confirm run; None without one.
        merge_base: the commit up to which the runs count that a change is compared with; '' for what is no change.
        confirms: the run that this run confirms; '' for none.
        why: parts of the verdict's reason; None for a run without a verdict.
        neutral: whether the run is `unconfirmed` and its policy does not block on that.
        now: time of reading, seconds since the epoch.
    """

    run: Run
    plan: Plan | None
    plan_problem: str
    facts: Facts
    attempts: tuple[Attempt, ...]
    checks: tuple[CheckResult, ...]
    medians: dict[tuple[str, str, str], float]
    certificate: Any
    before: Failure | None = None
    confirmation: Asked | None = None
    confirms: str = ""
    merge_base: str = ""
    unlike_before: str = ""
    neutral: bool = False
    why: dict[str, Any] | None = None
    now: float = field(default_factory=time.time)

    @cached_property
    def last(self) -> dict[str, Attempt]:
        """Last attempt by step id."""
        return {attempt.step: attempt for attempt in self.attempts}

    @property
    def waits_for_confirmation(self) -> bool:
        """Whether the verdict waits for a confirm run."""
        return self.run.status is None and self.confirmation is not None and self.now < self.confirmation.until

    def said(self, key: str, default: Status) -> str:
        """Return the status word of a step or leg ('step/leg'); in an active run, `waiting` if not started."""
        said = self.facts.step_status.get(key) or self.facts.leg_status.get(key)
        if said is not None or self.run.status is not None or default is Status.NOT_RUN:
            return (said or default).value
        attempt = self.last.get(key)
        return "running" if attempt is not None and attempt.ended_at is None else "waiting"


def read_story(store: ReadonlyStore, run_id: str) -> Story | None:
    """Return the run with exactly this id, or None."""
    run = store.run_or_none(run_id)
    if run is None:
        return None
    plan, problem = readable_plan(store, run_id)
    attempts = tuple(store.attempts(run_id))
    steps, legs = store.step_statuses(run_id), store.leg_statuses(run_id)
    medians = store.leg_medians(run_id)
    last = {one.step: one for one in attempts}.values()
    records = [record for attempt in last for record in attempt.records]
    facts = Facts(
        run=run_id,
        plan=plan or _no_plan(run),
        records=(*records, *store.leg_records(run_id)),
        node_facts=tuple(store.node_facts(run_id)),
        measurements=tuple(_latencies(run_id, medians)),
        step_status={step: status for step, (status, _) in steps.items()},
        leg_status={leg: status for leg, (status, _) in legs.items()},
        step_reason={key: reason for key, (_, reason) in {**steps, **legs}.items() if reason},
        engine=store.document(run_id, "engine") or {},
        reporter=store.reporter(run_id),
        failures={step: one for (step, _), one in failures_of(store.document(run_id, FAILURES), last).items()},
    )
    return Story(
        run=run,
        plan=plan,
        plan_problem=problem,
        facts=facts,
        attempts=attempts,
        checks=tuple(store.check_results(run_id)),
        medians=medians,
        certificate=store.document(run_id, "certificate"),
        before=failure_before(store.document(run_id, FAILURES)),
        confirmation=asked_of(store, run_id),
        merge_base=str((store.document(run_id, "base") or {}).get("commit", "")),
        unlike_before=store.unlike_before(run),
        neutral=is_neutral(store, run),
        why=store.document(run_id, WHY),
        confirms=str((store.document(run_id, "request") or {}).get("confirms", "")),
    )


def readable_plan(store: ReadonlyStore, run_id: str) -> tuple[Plan | None, str]:
    """Return the run's plan, or None and the reason why this version cannot read it ('' without a plan)."""
    try:
        return store.plan_or_none(run_id), ""
    except (ValidationError, json.JSONDecodeError) as error:
        return None, f"this tipcflow cannot read the run's plan: {str(error).splitlines()[0]}"


def _latencies(run_id: str, medians: dict[tuple[str, str, str], float]) -> list[Measurement]:
    return [
        Measurement(run=run_id, step=step, leg=leg, node="median", metric=metric, phase=Phase.INFER, value=value)
        for (step, leg, metric), value in medians.items()
        if metric == "inference_time"
    ]


def _no_plan(run: Run) -> Plan:
    return Plan(
        chain=run.chain,
        suite=run.suite,
        dialect="",
        model=run.model,
        params_file="",
        params_sha256="",
        mode=run.mode,
        compat=Compat(run.compat),
        cluster=run.cluster,
    )

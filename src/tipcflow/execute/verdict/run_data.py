"""Loads what is stored about a run: for the CLI, the pages and reports."""

import json
from typing import TYPE_CHECKING

from pydantic import ValidationError

from tipcflow.domain import Plan, Run
from tipcflow.domain.run_documents import (
    CertificateDocument,
    ConfirmationDocument,
    Document,
    FailuresDocument,
    JudgementDocument,
    MergeBaseDocument,
)
from tipcflow.execute.request import RequestDocument
from tipcflow.execute.verdict.check_context import declared_prints
from tipcflow.execute.verdict.conclusion import is_neutral
from tipcflow.report.api import Confirming
from tipcflow.report.run.data import RunData

if TYPE_CHECKING:
    from tipcflow.store import Store


_DOCUMENTS: tuple[type[Document], ...] = (
    CertificateDocument,
    ConfirmationDocument,
    FailuresDocument,
    JudgementDocument,
    MergeBaseDocument,
    RequestDocument,
)


def load_run(store: "Store", run: Run, *, raw: bool = False) -> RunData:
    """Return everything that is stored about a run.

    Args:
        raw: include all measurements and the contents of reports, as a verdict needs them. Without, `facts` has
            one median latency per leg, and a plan that this version cannot read is reported as `plan_problem`.

    Raises:
        pydantic.ValidationError: with `raw`, for a plan that this version cannot read.
    """
    medians = store.summaries.leg_medians(run.id)
    if raw:
        plan, problem = store.plans.get_or_none(run.id), ""
        facts = store.history.facts(run.id, losses=declared_prints(store, run.id).losses)
    else:
        plan, problem = readable_plan(store, run.id)
        facts = store.history.facts_without_samples(run, plan, medians)
    attempts = tuple(store.attempts.of(run.id))
    documents = store.documents.several(run.id, _DOCUMENTS)
    certificate, base = documents.get(CertificateDocument), documents.get(MergeBaseDocument)
    failures, request = documents.get(FailuresDocument) or FailuresDocument(), documents.get(RequestDocument)
    confirmation = documents.get(ConfirmationDocument)
    return RunData(
        run=run,
        plan=plan,
        plan_problem=problem,
        facts=facts,
        attempts=attempts,
        checks=tuple(store.checks.results(run.id)),
        medians=medians,
        certificate=certificate.root if certificate else None,
        before=failures.before,
        failures=failures.of(attempts),
        confirmation=None
        if confirmation is None
        else Confirming.model_validate(confirmation.body(), extra="ignore"),
        confirms=request.root.confirms if request else "",
        only=request.root.only if request and not request.root.confirms else (),
        merge_base=base.commit if base else "",
        unlike_before=store.history.unlike_before(run),
        neutral=is_neutral(store, run),
        judged=documents.get(JudgementDocument),
    )


def readable_plan(store: "Store", run_id: str) -> tuple[Plan | None, str]:
    """Return the run's plan, or None and the reason why this version cannot read it ('' without a plan)."""
    try:
        return store.plans.get_or_none(run_id), ""
    except (ValidationError, json.JSONDecodeError) as error:
        return None, f"this tipcflow cannot read the run's plan: {str(error).splitlines()[0]}"

"""Store the evidence that a run must produce, when its plan is made."""

from typing import TYPE_CHECKING

from tipcflow.check.evidence import expected
from tipcflow.config.policy import Policy
from tipcflow.config.suite import Suite
from tipcflow.domain import Plan
from tipcflow.execute.verdict.check_context import found_before

if TYPE_CHECKING:
    from tipcflow.store import Store

DOCUMENT = "expected"


def keep_expected(store: "Store", run_id: str, plan: Plan, suite: Suite, policy: Policy) -> None:
    """Store the expected evidence of a run with a known environment, as far as it is known (document
    `expected`)."""
    run = store.get_run(run_id)
    history = found_before(store, run, limit=policy.min_history) if run.environment else ()
    pieces = expected(plan, suite.prints, history, min_history=policy.min_history)
    store.put_document(run_id, DOCUMENT, [piece.model_dump(mode="json") for piece in pieces])

"""Store the evidence that a run must produce, when its plan is made."""

from typing import TYPE_CHECKING

from tipcflow.check.evidence import expected
from tipcflow.config.policy import Policy
from tipcflow.config.suite import Suite
from tipcflow.domain import Plan
from tipcflow.domain.run_documents import ExpectedDocument
from tipcflow.execute.verdict.check_context import found_before

if TYPE_CHECKING:
    from tipcflow.store import Store


def keep_expected(store: "Store", run_id: str, plan: Plan, suite: Suite, policy: Policy) -> None:
    """Store the expected evidence of a run with a known environment, as far as it is known."""
    run = store.runs.get(run_id)
    history = found_before(store, run, policy) if run.environment else ()
    pieces = expected(plan, suite.prints, history, min_history=policy.min_history)
    store.documents.put(run_id, ExpectedDocument(pieces))

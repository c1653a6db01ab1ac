"""The failure class and the root cause that a run reports."""

import re
from dataclasses import dataclass

from tests.support.certify import Site

from tipcflow.domain import Run
from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run_documents import FailuresDocument

_NODE = re.compile(r"\bnode (\w+)")


@dataclass(frozen=True)
class RecordedFailure:
    """`failure` is the class, '' for none; `root_cause` is `node b`, with the rank if known."""

    failure: str = ""
    root_cause: str = ""


def recorded_failure(site: Site, run: Run) -> RecordedFailure:
    """The failure of the first attempt that failed, as the run reports it; a run without attempts has no class."""
    with site.store() as store:
        attempts = store.attempts.of(run.id)
        failures = (store.documents.get(run.id, FailuresDocument) or FailuresDocument()).of(attempts)
    keys = [AttemptKey(attempt.step, attempt.attempt) for attempt in attempts]
    first = next((failures[key] for key in keys if key in failures), None)
    if first is not None:
        return RecordedFailure(first.failure_class.value, first.root_cause)
    found = _NODE.search(run.reason)
    return RecordedFailure(root_cause=f"node {found[1]}" if found else "")

"""How a run tells what kind of failure it was, and who is to blame."""

import re
from dataclasses import dataclass

from tests.support.certify import Site

from tipcflow.domain import Run
from tipcflow.domain.run_documents import FailuresDocument

_NODE = re.compile(r"\bnode (\w+)")


@dataclass(frozen=True)
class Told:
    """`failure` is the class, '' when none is told; `culprit` is `node b`, with the rank where it is known."""

    failure: str = ""
    culprit: str = ""


def told_failure(site: Site, run: Run) -> Told:
    """What a run says of the first attempt that did not end well; a run that never tried anything has no class."""
    with site.store() as store:
        attempts = store.attempts.of(run.id)
        failures = (store.documents.get(run.id, FailuresDocument) or FailuresDocument()).of(attempts)
    first = next((failures[key] for one in attempts if (key := (one.step, one.attempt)) in failures), None)
    if first is not None:
        return Told(first.failure_class.value, first.culprit)
    found = _NODE.search(run.reason)
    return Told(culprit=f"node {found[1]}" if found else "")

"""The result of a run's confirm run, as one tuple."""

from typing import Any

from tipcflow.domain import MetricKey, Run
from tipcflow.execute.verdict.confirmed import confirmation_of


def told(store: Any, run: Run) -> tuple[str, dict[MetricKey, float], str, str] | None:
    """Confirm run, what it measured, why there is not more, why it failed; None when none was requested."""
    found = confirmation_of(store, run.id)
    return None if found is None else (found.run, dict(found.medians), found.missing, found.failed)

"""Loads two or three runs of one chain for comparison."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.check.baseline.detector_limits import MetricLimits, metric_limits
from tipcflow.check.context import observed_values
from tipcflow.check.select import SHARES
from tipcflow.config.policy import Policy
from tipcflow.config.run_documents import PolicyDocument, SuiteDocument
from tipcflow.domain import ConfigError, MetricKey, PastRun, Run
from tipcflow.execute.verdict.check_context import active_decisions, doubtful_runs, history_of
from tipcflow.execute.verdict.judge import policy_of
from tipcflow.execute.verdict.run_data import load_run
from tipcflow.report.comparison.model import LEAST, MOST, ComparedRun, Comparison, comparison

if TYPE_CHECKING:
    from tipcflow.store import Store


def compare_runs(store: "Store", names: Sequence[str], *, config_dir: Path, policy: str = "") -> Comparison:
    """Compare runs; the first is the base, and the noise is that of the last run's history.

    Args:
        names: run IDs, prefixes or `latest`.
        policy: name of the policy whose limits apply; '' for that of the last run.

    Raises:
        ConfigError: a run does not exist, there are fewer than two or more than three, one is named twice, or the
            runs are of different chains.
    """
    if not LEAST <= len(names) <= MOST:
        raise ConfigError("wrong number of runs", key="run", found=str(len(names)), expected=f"{LEAST} or {MOST}")
    runs = [store.runs.find(name) for name in names]
    _refuse_unlike(runs)
    rules = policy_of(store, runs[-1], policy, config_dir)
    history = accepted_history(store, runs[-1], rules)
    doubtful = unconfirmed_runs(store, runs[-1], history, rules)
    numbers = store.numbers.of([run.id for run in runs])

    def limits(key: MetricKey) -> MetricLimits:
        return metric_limits(observed_values(history, key, doubtful), key.metric, rules)

    suites = store.documents.of_runs(SuiteDocument, [run.id for run in runs])
    units = store.numbers.units([run.id for run in runs])
    compared = [
        ComparedRun(
            load_run(store, run),
            numbers[run.id].values,
            numbers[run.id].exact,
            _policy(store, run),
            suites[run.id].root.settings() if run.id in suites else None,
            _units(
                units[run.id],
                numbers[run.id].values,
                suites[run.id].root.prints.accuracy if run.id in suites else "",
            ),
        )
        for run in runs
    ]
    known = sum(bool(past.medians) for past in history)
    return comparison(compared, limits, policy=rules.name, history=known, needed=rules.detect.min_history)


def accepted_history(store: "Store", run: Run, rules: Policy) -> tuple[PastRun, ...]:
    """Return the accepted runs that the next run of this chain, mode and environment class is compared with,
    oldest first, with metric values only: the history of `tipcflow gate`."""
    starts = active_decisions(store.baselines.decisions(run.chain, run.mode, run.environment)).starts
    # The run itself is part of the history of the next run.
    return history_of(store, run.model_copy(update={"id": ""}), starts, rules, load=store.numbers.past)


def unconfirmed_runs(
    store: "Store", run: Run, history: Sequence[PastRun], rules: Policy
) -> dict[str, tuple[PastRun, ...]]:
    """Return the unconfirmed runs among `accepted_history`, by the accepted run before them, oldest first."""
    return doubtful_runs(store, run.model_copy(update={"id": ""}), history, limit=rules.history, as_of=None)


def _units(printed: Mapping[MetricKey, str], values: Iterable[MetricKey], accuracy: str) -> dict[MetricKey, str]:
    """Return the units of a run's values: those of its log; of accuracies, the suite's `prints.accuracy`."""
    shares = {key.of(key.plain_metric) for key in values if key.plain_metric in SHARES} if accuracy else ()
    return {**printed, **dict.fromkeys(shares, "%" if accuracy == "%" else "")}


def _refuse_unlike(runs: Sequence[Run]) -> None:
    if len({run.id for run in runs}) < len(runs):
        raise ConfigError("a run cannot be compared with itself", key="run", found=runs[-1].id)
    first = runs[0]
    other = next((run for run in runs if run.chain != first.chain), None)
    if other is not None:
        raise ConfigError(
            "runs of different chains cannot be compared",
            key="run",
            found=f"{first.id} of {first.chain}, {other.id} of {other.chain}",
            expected="runs of one chain",
        )


def _policy(store: "Store", run: Run) -> str:
    document = store.documents.get(run.id, PolicyDocument)
    return document.root.name if document else ""

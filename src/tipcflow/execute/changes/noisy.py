"""Chains whose history is too noisy for the gate: only an A/B comparison shows a change of their speed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tipcflow.check.baseline.detector_limits import gate_limits
from tipcflow.config.policy import Policy
from tipcflow.domain import Run, plain_metric
from tipcflow.domain.numbers.metrics import metric
from tipcflow.domain.numbers.units import percentage
from tipcflow.domain.run_documents import MergeBaseDocument
from tipcflow.domain.triggers import SIDE_RUNS
from tipcflow.execute.changes.fitted import GOOD
from tipcflow.execute.verdict.check_context import active_decisions, history_of
from tipcflow.execute.verdict.judge import load_policy
from tipcflow.store import Store

# Stored runs of a chain that are considered.
_RUNS = 100


@dataclass(frozen=True)
class NoisyChain:
    """A chain with a gating speed of which the gate finds large changes only.

    Attributes:
        smallest: the smallest relative change that the detector finds; `above` is the policy's limit.
    """

    chain: str
    metric: str
    smallest: float
    above: float

    @property
    def why(self) -> str:
        """The reason for a comparison, a clause."""
        smallest, limit = percentage(self.smallest, 0), percentage(self.above, 0)
        return f"the gate finds changes of {self.metric} from {smallest} only, not from {limit}"


def noisy_chains(
    store: Store, chains: Sequence[str], *, mode: str, cluster: str, policy: str, config_dir: Path
) -> list[NoisyChain]:
    """Return the chains that the policy wants to compare because their history is too noisy, the noisiest first.

    A chain with too few runs is not noisy: nothing is known about its noise.

    Raises:
        ConfigError: the policy does not exist or is invalid.
    """
    rules = load_policy(policy, config_dir)
    noisy = []
    for chain in chains:
        run = _newest(store, chain, mode, cluster)
        if run is None:
            continue
        own = rules.for_model(run.suite, run.model)
        if own.ab.when == "noisy":
            noisy += [each for each in _noisiest(store, run, own) if each.smallest > own.ab.above]
    return sorted(noisy, key=lambda each: (-each.smallest, each.chain))


def _newest(store: Store, chain: str, mode: str, cluster: str) -> Run | None:
    """Return the newest run of the chain that may be part of its history."""
    for run in store.runs.newest(chain=chain, limit=_RUNS):
        is_alike = (run.mode, run.cluster) == (mode, cluster) and run.status in GOOD
        if is_alike and run.trigger not in SIDE_RUNS and store.documents.get(run.id, MergeBaseDocument) is None:
            return run
    return None


def _noisiest(store: Store, run: Run, rules: Policy) -> Iterator[NoisyChain]:
    """Yield the gating speed with the largest smallest change; nothing if none is known."""
    starts = active_decisions(store.baselines.decisions(run.chain, run.mode, run.environment)).starts
    # The run itself is part of the history of the next run.
    history = history_of(store, run.model_copy(update={"id": ""}), starts, rules)
    rows = [
        row
        for row in gate_limits(history, rules, within_s=0.0)
        if row["smallest"] is not None and _is_gating_speed(row["metric"], rules)
    ]
    if rows:
        worst = max(rows, key=lambda row: (row["smallest"], row["metric"]))
        yield NoisyChain(run.chain, worst["metric"], worst["smallest"], rules.ab.above)


def _is_gating_speed(name: str, rules: Policy) -> bool:
    rule = rules.rule_of(name)
    return rule is not None and rule.gating and metric(plain_metric(name)).family == "speed"

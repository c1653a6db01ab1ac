"""`/tipc accept METRIC because …`: the values of an attempt's runs become baselines."""

from tipcflow.domain import ConfigError, MetricKey
from tipcflow.domain.numbers.metrics import metric as known_metric
from tipcflow.github.commands import Accept
from tipcflow.github.flow.observe import seen_chains
from tipcflow.store import Baseline, Store
from tipcflow.store.github.attempts import PullAttempt


def accept(store: Store, attempt: PullAttempt, command: Accept, user: str) -> str:
    """Accept a metric's values of all ended runs of an attempt; returns the reply to the user.

    Raises:
        ConfigError: no ended run has this metric.
    """
    decided: list[Baseline] = []
    chains = []
    for seen in seen_chains(store, attempt):
        if seen.run is None or seen.status is None:
            continue
        run = seen.run
        values = {
            key: value
            for key, value in store.history.past_run(run.id).medians.items()
            if _is_meant(key, command.metric)
        }
        if values:
            chains.append(seen.chain.chain)
        decided += [
            Baseline(
                chain=run.chain,
                mode=run.mode,
                step=key.step,
                leg=key.leg,
                metric=key.metric,
                environment=run.environment,
                value=value,
                unit=known_metric(key.plain_metric).unit,
                run=run.id,
                who=user,
                why=command.because,
                accepted_at=store.now(),
            )
            for key, value in values.items()
        ]
    if not decided:
        raise ConfigError(f"No ended run of commit {attempt.head_sha[:8]} has the metric `{command.metric}`.")
    store.baselines.accept(decided)
    return f"Accepted {len(decided)} values of `{command.metric}` as baselines: {', '.join(chains)}."


def _is_meant(key: MetricKey, metric: str) -> bool:
    return metric in (key.metric, key.plain_metric) and known_metric(key.plain_metric).better != "none"

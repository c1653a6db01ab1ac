"""The planner's choice of A/B comparisons: chains whose history is too noisy for the gate, within the budget."""

from collections.abc import Sequence
from pathlib import Path

from tipcflow.ab import least_pairs
from tipcflow.budget import Fit
from tipcflow.config.repository import Repository
from tipcflow.domain import TipcflowError
from tipcflow.domain.numbers.units import minutes
from tipcflow.execute.changes import noisy_chains
from tipcflow.github.flow import ComparisonBody, add_comparison
from tipcflow.store import Store
from tipcflow.store.github.attempts import PullAttempt

# The error of the DAG `ab`, and its pairs that do not count.
_ERROR, _WARM_UPS = 0.02, 1


def plan_comparisons(
    attempt: PullAttempt, fitted: Fit, repository: Repository, store: Store, *, mode: str, config_dir: Path
) -> tuple[str, ...]:
    """Request comparisons with the base branch; returns a sentence for each chain whose history is too noisy.

    Only for the chains that a pull request affects, not for those of a command. What remains of the budget counts;
    a comparison is expected to need the smallest number of pairs that can decide. A repetition changes nothing.
    """
    if not attempt.number or not attempt.body.base or attempt.body.is_part:
        return ()
    expected = {chain.chain: chain.expected_s for chain in fitted.chains}
    try:
        noisy = noisy_chains(
            store,
            sorted(expected),
            mode=mode,
            cluster=repository.cluster,
            policy=repository.policy,
            config_dir=config_dir,
        )
    except TipcflowError:
        # The runs of the chains report an invalid policy.
        return ()
    left_s = 60 * repository.budget.minutes - fitted.total_s - fitted.reserve_s
    sentences: list[str] = []
    chosen: dict[str, str] = {}
    runs = 2 * (least_pairs(_ERROR) + _WARM_UPS)
    spent_s = 0.0
    for each in noisy:
        cost_s = runs * expected[each.chain]
        if spent_s + cost_s <= left_s:
            spent_s += cost_s
            chosen[each.chain] = f"{each.chain} is compared with the base: {each.why}"
            sentences.append(chosen[each.chain])
        else:
            need = f"{minutes(cost_s)} minutes do not fit the budget"
            sentences.append(f"{each.chain} is not compared with the base: {need}, although {each.why}")
    if chosen:
        _request(attempt, repository, store, chosen, minutes_each=left_s / 60 / len(chosen))
    return tuple(sentences)


def _request(
    attempt: PullAttempt, repository: Repository, store: Store, chosen: dict[str, str], *, minutes_each: float
) -> None:
    chains: Sequence[str] = sorted(chosen)
    body = ComparisonBody(
        number=attempt.number,
        text="",
        comment=0,
        head_sha=attempt.head_sha,
        base=attempt.body.base,
        by="the policy",
        globs=tuple(chains),
        why=tuple(chosen[chain] for chain in chains),
        budget_minutes=round(minutes_each, 1),
        requested_at=store.now(),
    )
    add_comparison(store, repository, body)

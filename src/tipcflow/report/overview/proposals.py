"""Checks that pass and fail on the same commit, which a user may quarantine."""

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from tipcflow.domain import CheckResult, Run, without_repeat
from tipcflow.domain.quarantine.signature import refusal, signature_of
from tipcflow.report.overview.flaky import Proposal, wilson

# A failure that was seen once may have had a cause outside of the chain.
_SEEN = 2

_Failure = tuple[str, str, str, str, str]


def proposals_of(reds: Iterable[tuple[Run, Sequence[CheckResult]]], runs: Iterable[Run]) -> tuple[Proposal, ...]:
    """Return the failures that at least two red runs share, the one with the highest lower bound first.

    Args:
        reds: red runs of groups with both outcomes, oldest first, with their check results.
        runs: all runs of these groups.
    """
    total = Counter((run.chain, run.mode, run.environment) for run in runs)
    failed: dict[tuple[tuple[str, str, str], _Failure], list[tuple[Run, CheckResult]]] = defaultdict(list)
    for run, results in reds:
        own = {_failure_of(result): result for result in results if not refusal(result)}
        for failure, result in own.items():
            failed[(run.chain, run.mode, run.environment), failure].append((run, result))
    proposals = [
        _proposal(members[-1][0], failure, hits=len(members), total=total[line])
        for (line, failure), members in failed.items()
        if len(members) >= _SEEN
    ]
    return tuple(sorted(proposals, key=lambda each: (-each.failed.low, -each.failed.rate, each.chain, each.check)))


def _failure_of(result: CheckResult) -> _Failure:
    return (result.check, without_repeat(result.step), result.leg, result.metric, signature_of(result))


def _proposal(run: Run, failure: _Failure, *, hits: int, total: int) -> Proposal:
    check, step, leg, metric, signature = failure
    scope = (("--step", step), ("--leg", leg), ("--metric", metric))
    options = [part for name, value in scope if value for part in (name, value)]
    command = shlex.join(["tipcflow", "quarantine", "add", run.chain, check, "--run", run.id, *options])
    return Proposal(
        chain=run.chain,
        mode=run.mode,
        environment=run.environment,
        check=check,
        step=step,
        leg=leg,
        metric=metric,
        signature=signature,
        failed=wilson(hits, total),
        run=run.id,
        command=f'{command} --owner TEAM --because "…"',
    )

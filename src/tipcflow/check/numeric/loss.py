"""Is every training loss finite, and does the loss decrease?"""

import math
from collections.abc import Sequence
from itertools import combinations
from statistics import median

from tipcflow.check.context import CheckContext
from tipcflow.check.numeric.falls import fall_of, largest_fall, usual_fall
from tipcflow.check.select import format_number, loss_names, losses, matches_any, passed, training_steps
from tipcflow.domain import CheckResult, Facts, Measurement, Phase, Status, Step, StepKind, last_attempts
from tipcflow.domain.numbers.measured import ValueKey
from tipcflow.domain.numbers.metrics import Scope, objective, scope_of
from tipcflow.domain.numbers.metrics import metric as definition_of
from tipcflow.domain.quarantine.signature import ReasonCode
from tipcflow.domain.run.names import ModeName
from tipcflow.params.modes import BENCHMARK

FINITE, FALLING = "loss.finite", "loss.falling"
# From this many iterations on, the curve itself determines its noise (`largest_fall`). With fewer, noise of five
# times the fall per iteration makes 3 % (12 iterations) to 33 % (4 iterations) of falling losses look as if they
# rose.
_ENOUGH = 16
# A loss whose fall is smaller even with its noise added does not fall: share of the loss at the start.
_LEAST_FALL = 0.005
# Fewer iterations show a rise when it is significant (Mann-Kendall, standard deviations) ...
_RISES = 2.2
# ... or, where no order of so few is significant, when each is higher than the one before and the last by half.
_BY_HALF = 1.5
_WORDS = {Phase.TRAIN: "training", Phase.EVAL: "evaluation"}


def loss_finite(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """Per training step: `failed` names the first iteration, node and rank whose loss is nan or inf, or states
    that a training that succeeded logged no loss. Per step or leg and other metric of training, evaluation or
    inference: `failed` names the first value that is nan or inf. The same for predictions of a passed step or
    leg."""
    results = [_finite(facts, step, context) for step in training_steps(facts)]
    return results + _others(facts, context) + _predictions(facts)


def loss_falling(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """Per training step: is the median of the last quarter of the loss below that of the first?

    Iterations are compared by their position, with the median over the ranks at each: single outliers of one rank
    or of one iteration do not decide. Of fewer than 16 iterations only a significant rise, or a loss that never
    changes, is a failure. Several losses without a total (a GAN's) need not fall, but must change.
    """
    return [_falling(facts, step, context) for step in training_steps(facts)]


def _finite(facts: Facts, step: Step, context: CheckContext) -> CheckResult:
    names = loss_names(facts, step, context.prints.losses)
    logged = [loss for name in names for series in losses(facts, step, name).values() for loss in series]
    broken = sorted(
        (loss for loss in logged if not math.isfinite(loss.value)), key=lambda loss: (loss.ordinal, loss.rank)
    )
    values: dict[str, object] = {"losses": len(logged), "not_finite": len(broken), "names": list(names)}

    def result(status: Status, reason: str) -> CheckResult:
        """Return a result of `loss.finite`."""
        metric = broken[0].metric if broken else objective(names) or "loss"
        return CheckResult(check=FINITE, status=status, reason=reason, step=step.id, metric=metric, values=values)

    if broken:
        first = broken[0]
        values |= {"node": first.node, "rank": first.rank, "epoch": first.epoch, "iteration": first.iteration}
        count = f"{len(broken)} of {len(logged)} losses are not finite"
        return result(Status.FAILED, f"{first.metric} is {first.value} {_where(first)}; {count}")
    if logged:
        called = "" if names == ("loss",) else f" ({', '.join(names)})"
        return result(Status.PASS, f"{len(logged)} losses, all finite{called}")
    if facts.step_status.get(step.id) is not Status.PASS:
        return result(Status.INSUFFICIENT_DATA, "no loss logged; training did not succeed")
    if not context.prints.loss or ModeName.parse(facts.plan.mode).mode == BENCHMARK:
        why = "suite file sets prints.loss: false" if not context.prints.loss else "benchmark mode"
        return result(Status.INSUFFICIENT_DATA, f"no loss logged; {why}")
    return result(Status.FAILED, "no loss logged although the training ended with exit code 0")


def _others(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One `failed` result for each step or leg and metric, other than a training's losses, with a value that is
    not finite."""
    kinds = {step.id: step for step in facts.plan.steps}
    series: dict[tuple[str, str, str], list[Measurement]] = {}
    for sample in last_attempts(facts.measurements):
        if sample.step in kinds and (sample.phase in _WORDS or _is_measured_by_leg(sample)):
            series.setdefault((sample.step, sample.leg, sample.metric), []).append(sample)
    results = []
    for (step, leg, metric), samples in sorted(series.items()):
        in_training = kinds[step].kind is StepKind.TRAIN
        judged = loss_names(facts, kinds[step], context.prints.losses) if in_training else ()
        broken = [
            sample
            for sample in samples
            if not math.isfinite(sample.value) and not (sample.phase is Phase.TRAIN and metric in judged)
        ]
        if not broken or matches_any(metric, context.prints.may_be_nan):
            continue
        first = min(broken, key=lambda sample: (sample.ordinal, sample.rank))
        what = _WORDS.get(first.phase, "inference")
        reason = f"{what} metric {metric} is {first.value} {_where(first)}; {len(broken)} of {len(samples)} values"
        values = {"not_finite": len(broken), "node": first.node, "rank": first.rank}
        results.append(
            CheckResult(
                check=FINITE,
                status=Status.FAILED,
                reason=f"{reason} are not finite",
                step=step,
                leg=leg,
                metric=metric,
                values=values,
            )
        )
    return results


def _is_measured_by_leg(sample: Measurement) -> bool:
    """Whether the leg itself measured the metric; memory and utilization are means of samples, which may be
    missing."""
    return sample.phase is Phase.INFER and definition_of(sample.metric).family in ("speed", "quality")


def _predictions(facts: Facts) -> list[CheckResult]:
    """One `failed` result for each passed step or leg that printed a score that is nan or inf."""
    results = []
    for key, images in sorted(facts.predictions.items()):
        broken = sorted(
            image for image, scores in images.items() if not all(math.isfinite(score) for score in scores)
        )
        if broken and passed(facts, key.step, key.leg):
            count = f"{len(broken)} of {len(images)} images have scores that are not finite"
            reason = f"prediction of image {broken[0]} is not finite; {count}"
            values = {"not_finite": len(broken)}
            results.append(
                CheckResult(
                    check=FINITE, status=Status.FAILED, reason=reason, step=key.step, leg=key.leg, values=values
                )
            )
    return results


def _where(sample: Measurement) -> str:
    rank = f", rank {sample.rank}" if sample.rank >= 0 else ""
    place = (
        f"epoch {sample.epoch}, iteration {sample.iteration}" if sample.epoch >= 0 else f"sample {sample.ordinal}"
    )
    return f"at {place} (node {sample.node}{rank})"


def _falling(facts: Facts, step: Step, context: CheckContext) -> CheckResult:
    names = loss_names(facts, step, context.prints.losses)
    # The mean of an epoch adds nothing to its iterations.
    names = tuple(name for name in names if scope_of(name) is not Scope.EPOCH) or names
    main = objective(names)

    def result(status: Status, reason: str, **values: object) -> CheckResult:
        """Return a result of `loss.falling`."""
        return CheckResult(
            check=FALLING,
            status=status,
            reason=reason,
            step=step.id,
            metric=main or "loss",
            gating=context.policy.loss.falling,
            values=values,
        )

    curves = [_curve(facts, step, name) for name in ([main] if main else names)]
    curve = min(curves, key=len, default=[])
    needed = context.policy.loss.min_points
    if len(curve) < needed:
        return result(Status.INSUFFICIENT_DATA, f"{len(curve)} iterations, at least {needed} required")
    if not all(math.isfinite(value) for points in curves for value in points):
        return result(Status.INSUFFICIENT_DATA, "not evaluated: non-finite losses (loss.finite)")
    if all(len(set(points)) == 1 for points in curves):
        reason = f"the loss does not fall: it is {format_number(curve[0])} in all {len(curve)} iterations"
        known = {
            "first": curve[0],
            ValueKey.LAST: curve[0],
            "iterations": len(curve),
            ValueKey.CODE: ReasonCode.CONSTANT_LOSS,
        }
        return result(Status.FAILED, reason, **known)
    if not main:
        return result(
            Status.INSUFFICIENT_DATA, f"{', '.join(names)}: only partial losses logged; no total loss to evaluate"
        )
    quarter = max(1, len(curve) // 4)
    first, last = median(curve[:quarter]), median(curve[-quarter:])
    medians = format_number(first), format_number(last)
    numbers = f"median of the first {quarter} iterations {medians[0]}, of the last {quarter} {medians[1]}"
    values: dict[str, object] = {"first": first, ValueKey.LAST: last, "iterations": len(curve)}
    status = trend(curve)
    usual = usual_fall(context, step.id, main, len(curve))
    if usual:
        numbers = f"{numbers}; {usual}"
    if usual and last >= first and not _rises(curve):
        # The noise of the seed is known: it separates a loss that does not fall from one that hardly falls.
        status = Status.FAILED if usual.is_below(fall_of(curve)) else Status.INSUFFICIENT_DATA
    if status is Status.PASS:
        return result(Status.PASS, numbers, **values)
    if status is Status.FAILED:
        return result(
            Status.FAILED, f"the loss does not fall: {numbers}", **values, **{ValueKey.CODE: ReasonCode.NO_FALL}
        )
    few = f"inconclusive after {len(curve)} iterations: change within noise"
    return result(Status.INSUFFICIENT_DATA, f"{numbers}; {few}", **values)


def trend(curve: Sequence[float]) -> Status:
    """`pass` for a loss that falls, `failed` for one that does not, `insufficient_data` for too few points.

    A falling loss with noise of five times its fall per iteration is `failed` in less than 0.5 % of cases.
    """
    quarter = max(1, len(curve) // 4)
    first, last = median(curve[:quarter]), median(curve[-quarter:])
    if last < first:
        return Status.PASS
    sure = len(set(curve)) == 1 or _rises(curve)
    return Status.FAILED if sure else Status.INSUFFICIENT_DATA


def _rises(curve: Sequence[float]) -> bool:
    """Whether the points are in an order, or at a distance, that a falling loss with noise hardly ever has."""
    if len(curve) >= _ENOUGH:
        return largest_fall(curve) < _LEAST_FALL
    quarter = len(curve) // 4
    if quarter > 1 and median(curve[-quarter:]) >= 2 * median(curve[:quarter]) > 0:
        return True
    count, ups = len(curve), _ups(curve)
    if ups == count * (count - 1) // 2 and curve[-1] >= _BY_HALF * curve[0] > 0:
        return True
    return ups > _RISES * math.sqrt(count * (count - 1) * (2 * count + 5) / 18)


def _ups(curve: Sequence[float]) -> int:
    """Pairs of points in which the later is higher, less those in which it is lower (Mann-Kendall's S)."""
    return sum((later > earlier) - (later < earlier) for earlier, later in combinations(curve, 2))


def _curve(facts: Facts, step: Step, name: str) -> list[float]:
    """Median loss over the ranks at each position that they reached: over those with at least half as many losses
    as the longest, so that a rank that logs one loss hides nothing of the others."""
    logged = losses(facts, step, name).values()
    longest = max((len(rank_losses) for rank_losses in logged), default=0)
    series = [rank_losses for rank_losses in logged if 2 * len(rank_losses) >= longest]
    length = min((len(rank_losses) for rank_losses in series), default=0)
    return [median(rank_losses[position].value for rank_losses in series) for position in range(length)]

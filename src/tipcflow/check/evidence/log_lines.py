"""Does `log_format` recognize the training's log lines as in earlier runs?"""

from collections.abc import Sequence

from tipcflow.check.context import CheckContext
from tipcflow.check.select import passed, training_steps
from tipcflow.domain import CheckResult, Facts, LogLines, Status, Step, without_repeat
from tipcflow.domain.numbers.units import percentage

NAME = "ran.log"
# A training whose recognized lines are fewer than this share of what every earlier run had lost lines.
_KEPT = 0.75
# Lost lines are in the log unrecognized when the log has more unknown lines by this share of the lost ones.
_MOVED = 0.5
# The share of recognized lines collapses when less than this part of it is left.
_COLLAPSED = 0.5
# Fewer lines are lost by chance, such as a last line that the end of the process cut off.
_FEWEST = 3


def ran_log(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per training that passed and has a history of its lines: `unconfirmed` when training lines that
    all of the last accepted runs had are there unrecognized; a share that fell for another reason is shown."""
    results = []
    for step in training_steps(facts):
        lines = facts.lines.get(step.id)
        if lines is None or not passed(facts, step.id, ""):
            continue
        earlier = [past.lines[key] for past in context.history if (key := _key(past.lines, step))]
        if len(earlier) >= context.policy.min_history:
            results.append(_judged(step, lines, earlier[-context.policy.min_history :]))
    return results


def _key(lines: dict[str, LogLines], step: Step) -> str:
    """The entry of an earlier run for this step, or for a repeat of it."""
    name = without_repeat(step.id)
    return step.id if step.id in lines else next((key for key in lines if without_repeat(key) == name), "")


def _judged(step: Step, lines: LogLines, earlier: Sequence[LogLines]) -> CheckResult:
    least = min(past.recognised for past in earlier)
    most_unknown = max(past.unknown for past in earlier)
    share = min(past.share for past in earlier)
    lost = least - lines.recognised
    now = f"{lines.recognised} of {lines.recognised + lines.unknown} log lines are recognized"
    before = f"each of the last {len(earlier)} accepted runs has at least {least} ({percentage(share, 0)})"
    values = {
        "recognised": lines.recognised,
        "unknown": lines.unknown,
        "recognised_before": least,
        "unknown_before": most_unknown,
    }

    def result(status: Status, reason: str, *, gating: bool = True) -> CheckResult:
        return CheckResult(check=NAME, status=status, reason=reason, step=step.id, gating=gating, values=values)

    lost_most = lost >= _FEWEST and lines.recognised < _KEPT * least
    if lost_most and lines.unknown - most_unknown >= _MOVED * lost:
        unread = lines.unknown - most_unknown
        return result(
            Status.UNCONFIRMED,
            f"{now} ({percentage(lines.share, 0)}); {before}; {unread} more lines are unrecognized",
        )
    if lines.share < _COLLAPSED * share:
        return result(Status.INSUFFICIENT_DATA, f"{now} ({percentage(lines.share, 0)}); {before}", gating=False)
    return result(Status.PASS, f"{now} ({percentage(lines.share, 0)})")

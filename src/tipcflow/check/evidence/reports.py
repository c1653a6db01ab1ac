"""Does a leg's AutoLog report prove that the leg ran?"""

from tipcflow.check.select import leg_key, records
from tipcflow.domain import Facts, Step

# Clocks of time zones differ by multiples of this, seconds.
_ZONES_S = 900.0
_FARTHEST_S = 15 * 3600.0
# A stamp has whole seconds, and the exit record's clock was read a moment before or after.
_SLACK_S = 5.0


def proves(facts: Facts, step: Step, leg: str) -> bool:
    """Whether the leg's last AutoLog report is its own: it has a time, and was printed while the leg ran."""
    return not report_defect(facts, step, leg) and bool(facts.autolog.get(leg_key(step, leg)))


def report_defect(facts: Facts, step: Step, leg: str) -> str:
    """Return why the leg's AutoLog report is not valid evidence; '' if it is.

    A report has local times of a zone that is not known: its time and the leg's must differ by a whole number of
    quarters of an hour, as all time zones do, give or take how long the leg ran.
    """
    key = leg_key(step, leg)
    report = facts.reports.get(key)
    if report is None or not facts.autolog.get(key):
        return ""
    if not report.timed:
        return "its AutoLog report ends before it has a time"
    ended = [record for record in records(facts, step.id, leg) if record.started_at > 0]
    if report.at < 0 or not ended:
        return ""
    record = ended[0]
    apart = report.at - record.started_at
    if abs(apart) > _FARTHEST_S + record.duration_s:
        return "its AutoLog report has a date other than the leg's"
    behind = (apart + _SLACK_S) % _ZONES_S
    if behind > record.duration_s + 2 * _SLACK_S:
        return "its AutoLog report was not printed while the leg ran"
    return ""

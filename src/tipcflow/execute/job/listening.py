"""What listeners see of a job's events."""

import json

from tipcflow.domain.run.job_event import JobEvent, JobHang, JobLog, JobState, LegEnd
from tipcflow.execute.progress import Event, Kind


def progress_event(event: JobEvent | None, *, step: str, node: str) -> Event | None:
    """The progress event for a job's event on a node; None if it is of no interest to users.

    An invalid record of a leg is reported when the attempt is closed.
    """
    match event:
        case JobState(state):
            return Event(Kind.STATE, state, step=step, node=node)
        case JobLog(leg, text):
            return Event(Kind.LOG, text, step=step, node=node, leg=leg)
        case JobHang(why, unsure=False):
            return Event(Kind.NOTE, f"node {node} hangs: {why}; collecting evidence", step=step, node=node)
        case LegEnd(record) if record is not None:
            code = json.dumps({"exit_code": record.exit_code})
            return Event(Kind.LEG, code, step=step, node=node, leg=record.leg)
    return None

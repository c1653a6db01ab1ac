"""Exit record of a whole job, combined from the records of its commands."""

from __future__ import annotations

import json
import os

from .files import PIECE, RESERVED, Json
from .start import refusal

OF_ITS_END = ("exit_code", "signal", "errno", "interpreter", "unmet")  # fields of the end of one command
DISK_FULL = 4 * 1024 * 1024  # if less disk space than this is free, bytes, the disk counts as the cause


def job_record(spec: Json, records: list[Json], reason: str, message: str) -> Json:
    """Combine the records of the commands: the first failed one, otherwise the last; `reason` is set if the job
    was ended early."""
    bad = [one for one in records if one.get("exit_code") != 0]
    chosen = (bad or records[-1:] or [refusal(spec, "")])[0]
    done = chosen["message"] if chosen.get("servers_finished") and not reason else ""
    record = dict(chosen, leg="", message=message or done, reason=reason or chosen["reason"])
    if reason and chosen["reason"] != reason:  # the job was ended for another reason than that command
        record = {key: value for key, value in record.items() if key not in OF_ITS_END}
    if bad and not reason:
        count = f"{len(bad)} of {len(spec['commands'])} legs failed, the first: {chosen['leg']}: "
        record["message"] = (count if chosen["leg"] else "") + chosen["message"]
    if records:
        record.update(started_at=records[0]["started_at"], ended_at=records[-1]["ended_at"])
        record["killed"] = sum(one.get("killed", 0) for one in records)
        record["world_size"] = max(one.get("world_size", 0) for one in records)
    for key in ("peak_rss_bytes", "peak_gpu_bytes"):
        record[key] = {}
        for one in records:
            for rank, size in one.get(key, {}).items():
                record[key][rank] = max(size, record[key].get(rank, 0))
    return record


def write_record(folder: str, record: Json, room: int) -> None:
    """Write the exit record; its space was reserved before the first command.

    Args:
        room: minimum of the free disk space during the job, bytes.
    """
    data, name = json.dumps(record).encode(), os.path.join(folder, RESERVED)
    if len(data) > PIECE and room < DISK_FULL:
        message = record["message"] + "; outputs left out"
        data = json.dumps(dict(record, outputs=[], gpu_processes=[], message=message)).encode()
    with open(name, "r+b" if os.path.exists(name) else "wb") as handle:  # the job may have deleted it
        handle.write(data)
        handle.truncate()
    os.rename(name, os.path.join(folder, "exit.json"))
    ballast = os.path.join(folder, "ballast")
    if os.path.exists(ballast):
        os.unlink(ballast)

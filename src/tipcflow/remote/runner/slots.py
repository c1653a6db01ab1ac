"""Slots and CPUs of a node, acquired before a job may run."""

from __future__ import annotations

import errno
import fcntl
import glob
import json
import os
import socket
import time

from . import container
from .files import Json, job_folder, job_id, load
from .membership import OrphanedJob
from .processes import describe_process, end_all

SLOT_WAIT_S = 5.0  # time for the previous job to end
SLOT_BYTES = 4096
# Names of abstract sockets: `<name>/<host>/<slot>`, followed by the run if known. The limit is 107 bytes.
SLOT_NAME, RUN_NAME, HOST = "tipcflow-slot", "tipcflow-run", "host"
RUN_LENGTH = 60
FENCES_END = 2**53  # no controller counts this far: a larger number was not written by a controller
# The last job's runner has waited longer already, and a controller waits for this job to be staged.
GIVE_UP_S = 5.0


class Refused(Exception):
    """The job may not start; the text is the reason."""


def take_slot(spec: Json, number: int) -> int:
    """Lock a slot for the job after ending the remaining processes of a dead runner on it.

    The lease's fencing number is stored in the slot's file, so that a controller whose lease was granted to
    another run is rejected.

    Returns:
        The file descriptor that holds the lock.

    Raises:
        Refused: a living job holds the slot, the slot has seen a newer lease, or the remaining processes of
            its last job cannot be ended.
    """
    path = os.path.join(spec["workspace"], "slots", f"{number}.lock")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    slot = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        lock_slot(slot, path, spec, number)
        refuse_claimed(spec, number)
        free_slot(load(path) or {"fence": spec["fence"], "job": ""}, spec, number)
        text = json.dumps(
            {
                "fence": spec["fence"],
                "job": job_id(spec),
                "container": spec.get("container", ""),
                "container_engine": spec.get("container_engine", ""),
            }
        )
        os.pwrite(slot, text.encode().ljust(SLOT_BYTES), 0)  # padded, in place: a full disk cannot lose the number
    except BaseException:
        os.close(slot)
        raise
    return slot


def lock_slot(slot: int, path: str, spec: Json, number: int) -> None:
    """Wait for the slot's lock, long enough for a job that is just ending."""
    until = time.monotonic() + SLOT_WAIT_S
    while True:
        try:
            fcntl.flock(slot, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until:
                holder = (load(path) or {}).get("job", "a job that is starting")
                raise Refused(f"slot {number} of {spec['node']} is held by {holder}") from None
            time.sleep(0.02)


def host_slots() -> list[Json]:
    """Return the holders of this host's slots, in any workspace, as any user: `host`, `slot` and `run` (its
    first part)."""
    found = []
    try:
        with open("/proc/net/unix", "rb") as handle:
            lines = handle.read().decode("ascii", "replace").splitlines()
    except OSError:
        return []
    for line in lines:
        parts = line.rpartition(" ")[2].split("/")
        if len(parts) == 4 and parts[0] == f"@{RUN_NAME}" and parts[2].isdigit():
            found.append({"host": parts[1], "slot": int(parts[2]), "run": parts[3]})
    return found


def take_host_slot(spec: Json, number: int) -> list[int]:
    """Acquire a slot of the host for the job; another workspace, user or controller may use the same host.

    A run with several nodes on one host, under several addresses, does not block itself.

    Returns:
        File descriptors that hold the slot while they are open; none if the host has no abstract sockets.

    Raises:
        Refused: another run holds the slot; the message names that run.
    """
    host, own = spec.get("host"), spec["run"][:RUN_LENGTH]
    if not host:
        return []
    until = time.monotonic() + SLOT_WAIT_S
    while True:
        slot, mark = (socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2))
        try:
            slot.bind(f"\0{SLOT_NAME}/{host}/{number}")
            mark.bind(f"\0{RUN_NAME}/{host}/{number}/{own}")
            return [slot.detach(), mark.detach()]
        except OSError as error:
            slot.close()
            mark.close()
            if error.errno != errno.EADDRINUSE:
                return []
        if time.monotonic() > until:
            holders = {one["run"] for one in host_slots() if (one["host"], one["slot"]) == (host, number)}
            if holders == {own}:
                return []
            who = ", ".join(sorted(holders)) or "a job that is starting"
            raise Refused(
                f"slot {number} of {spec['node']} is held by run {who} from another workspace of this host"
            )
        time.sleep(0.05)


def refuse_claimed(spec: Json, number: int) -> None:
    """Refuse a job whose slot another run has claimed since: that run's lease is the newer one.

    Raises:
        Refused: the message names that run.
    """
    for path in glob.glob(os.path.join(glob.escape(spec["workspace"]), "claims", "*.json")):
        claim = load(path)
        try:
            other = claim["run"] != spec["run"] and number in claim["slots"] and claim["until"] > time.time()
        except (KeyError, TypeError):
            continue
        if other:
            raise Refused(
                f"slot {number} of {spec['node']} is claimed by run {claim['run']} ({claim.get('owner')}), "
                "which got a lease on it later"
            )


def free_slot(last: Json, spec: Json, number: int) -> None:
    """Make the locked slot available to the job: no newer lease has used it, and no processes remain on it."""
    seen = last["fence"] if isinstance(last["fence"], int) and last["fence"] < FENCES_END else 0
    if spec["fence"] < seen:
        raise Refused(
            f"slot {number} of {spec['node']} has seen lease {seen} (of {last['job']}); "
            f"this job has the older lease {spec['fence']}; "
            "start the run again to acquire a newer lease"
        )
    if last["job"] not in ("", job_id(spec)):
        end_last(spec, last["job"], number)
        end_container(spec["workspace"], last, number)


def end_last(spec: Json, last: str, number: int) -> None:
    """End the remaining processes of the slot's last job: its runner died, or SIGKILL was not enough.

    Until they have ended, the slot keeps that job's name, so that every later job checks again.

    Raises:
        Refused: some processes remain.
    """
    wanted = {"TIPCFLOW_WORKSPACE": spec["workspace"], "TIPCFLOW_JOB": last}
    orphans = OrphanedJob(wanted, job_folder(spec["workspace"], last))
    end_all(orphans.find, grace_s=0.0, kill_after_s=spec["kill_after_s"], give_up_s=GIVE_UP_S, kill=orphans.kill)
    left = ", ".join(describe_process(proc) for proc in orphans.find())
    if left:
        raise Refused(f"slot {number} of {spec['node']} is still used by {last}: SIGKILL has not ended pid {left}")
    orphans.forget()


def end_container(workspace: str, last: Json, number: int) -> None:
    """Remove the container of the slot's last job if its runner has not done so.

    Args:
        last: the contents of the slot's file, sufficient if the job's folder no longer exists.

    Raises:
        Refused: the container cannot be removed.
    """
    if not last.get("container"):
        return
    folder = job_folder(workspace, last["job"])
    mark = os.path.join(folder, container.MARK)
    if os.path.isdir(folder) and not os.path.exists(mark):
        return  # its runner has removed it
    trouble = container.remove(load(os.path.join(folder, "job.json")) or last)
    if trouble:
        raise Refused(f"slot {number}: container {last['container']} of {last['job']} was not removed: {trouble}")
    if os.path.exists(mark):
        os.unlink(mark)


def take_cpus(cpus: str) -> None:
    """Bind this process and all its children to CPUs in the syntax of `taskset -c`; '' means all.

    Raises:
        Refused: the list is invalid, or the node has none of these CPUs.
    """
    if not cpus:
        return
    try:
        ends = [part.partition("-") for part in cpus.split(",")]
        os.sched_setaffinity(
            0, {cpu for first, _, last in ends for cpu in range(int(first), int(last or first) + 1)}
        )
    except (OSError, ValueError) as error:
        raise Refused(f"cannot use the CPUs {cpus!r}: {error}") from None

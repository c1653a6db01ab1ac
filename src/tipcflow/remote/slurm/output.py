"""What Slurm's commands print."""

import calendar
import re
import time
from dataclasses import dataclass

from tipcflow.domain import InfraError

# The oldest version with `scancel --me`, and with steps that share memory and GRES by `srun --overlap`.
OLDEST = "22.05"
# An address that no node has, see `commands.nodes`.
NEXT = "255.255.255.255"
WAITING = frozenset(
    [
        "PENDING",
        "CONFIGURING",
        "POWER_UP_NODE",
        "REQUEUED",
        "REQUEUE_HOLD",
        "REQUEUE_FED",
        "RESV_DEL_HOLD",
        "SPECIAL_EXIT",
    ]
)
# States after which a job has no nodes any more; in COMPLETING, its processes end. Any other state is that of a
# living job: also SUSPENDED, STOPPED, RESIZING, SIGNALING, STAGE_OUT, and those of newer versions of Slurm.
ENDED = frozenset(
    [
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "COMPLETING",
        "DEADLINE",
        "FAILED",
        "LAUNCH_FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "RECONFIG_FAIL",
        "REVOKED",
        "TIMEOUT",
    ]
)

# sbatch's message -> the key of the cluster file that it is about.
_KEYS = (
    ("partition", re.compile(r"(?i)invalid partition|partition .*(?:unavailable|inactive|not exist)")),
    ("account", re.compile(r"(?i)invalid account")),
    ("qos", re.compile(r"(?i)invalid qos")),
    ("constraint", re.compile(r"(?i)invalid feature")),
    ("gres", re.compile(r"(?i)invalid generic resource|invalid gres")),
    ("time_limit_minutes", re.compile(r"(?i)requested time limit is invalid")),
    ("nodes", re.compile(r"(?i)node count specification invalid|requested node configuration is not available")),
)
# Messages of a slurmctld that does not respond or is busy: it may have received the request. And of one that
# accepts no more jobs of the user or the account for now.
_PASSING = re.compile(
    r"(?i)timed out|unable to contact|resource temporarily unavailable|connection (?:refused|reset)|"
    r"transport endpoint|zero bytes were transmitted|slurm controller|try again|"
    r"\b(?:assoc|qos)\w*(?:max|grp)submitjob\w*"
)


@dataclass(frozen=True)
class SlurmJob:
    """A job as printed by `squeue`.

    Attributes:
        submitted, starts: seconds since the epoch; `starts` is expected while the job waits; None if unknown.
        nodelist: its nodes as `n[1-4]`; '' before it has some.
    """

    id: str
    state: str
    reason: str
    submitted: float | None
    starts: float | None
    nodelist: str
    name: str

    @property
    def is_waiting(self) -> bool:
        """Whether it may still get its nodes."""
        return self.is_active and not self.is_running

    @property
    def is_running(self) -> bool:
        """Whether it has its nodes."""
        return self.is_active and self.state not in WAITING and bool(self.nodelist)

    @property
    def ended_by(self) -> str:
        """State and reason of a job that has ended; only the reason, if it is known, while its processes end."""
        reason = "" if self.reason == "None" else self.reason
        return reason if reason and self.state == "COMPLETING" else ", ".join(filter(None, (self.state, reason)))

    @property
    def lost_a_node(self) -> bool:
        """Whether it has ended because one of its nodes failed."""
        return self.state == "NODE_FAIL" or self.reason == "NodeDown"

    @property
    def is_active(self) -> bool:
        """Whether it waits or runs."""
        return self.state not in ENDED


def active_jobs_in(text: str) -> list[SlurmJob]:
    """Return the jobs printed by `commands.own` that wait or run, in the order of their submission."""
    return [job for job in jobs_in(text) if job.is_active]


def jobs_in(text: str, name: str = "") -> list[SlurmJob]:
    """Return the jobs printed by `commands.find` or `commands.state`, in the order of their submission.

    Args:
        name: only jobs of this name; '' for all.
    """
    jobs = []
    for line in text.splitlines():
        fields = line.strip().split("|")
        if len(fields) != 7 or not fields[0].isdigit():
            continue
        job, state, reason, submitted, starts, nodelist, own = fields
        if name in ("", own):
            jobs.append(SlurmJob(job, state, reason, time_in(submitted), time_in(starts), nodelist, own))
    return sorted(jobs, key=lambda job: (job.submitted or 0.0, int(job.id)))


def is_over(code: int, output: str, errors: str, *, name: str) -> bool:
    """Whether a job has ended, by the result of `commands.state`.

    A slurmctld that does not respond ends no allocation: a step reports whether its node is lost.

    Args:
        name: the job's name, because Slurm gives its ID to another job after `MaxJobId` and after a loss of its
            state; '' if unknown.
    """
    if code and "Invalid job id" not in errors:
        return False
    return not any(job.is_running for job in jobs_in(output, name))


def time_in(text: str) -> float | None:
    """Return a time in UTC, seconds since the epoch; None for `N/A` and `Unknown`."""
    try:
        return float(calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S")))
    except ValueError:
        return None


def version_in(text: str) -> str:
    """Return the version of Slurm that `commands.version` printed, such as `22.05.8`; '' if there is none."""
    line = re.search(r"(?m)^slurm\S* (\d+\.\d+\S*)", text)
    return line[1] if line else ""


def is_too_old(version: str) -> bool:
    """Whether a version is older than `OLDEST`; an unknown one is not."""
    numbers = [[int(part) for part in text.split(".")[:2]] for text in (version, OLDEST) if text]
    return len(numbers) == 2 and numbers[0] < numbers[1]


def submitted_job(text: str) -> str:
    """Return the ID that `sbatch --parsable` printed; '' if there is none."""
    lines = text.strip().splitlines()
    job = lines[-1].partition(";")[0] if lines else ""
    return job if job.isdigit() else ""


def position_in(text: str, job: str) -> tuple[int, int]:
    """Return (position from 1, number of pending jobs); (0, n) if the job is not listed."""
    jobs = [line.strip() for line in text.splitlines() if line.strip()]
    return (jobs.index(job) + 1 if job in jobs else 0), len(jobs)


@dataclass(frozen=True)
class SlurmNode:
    """A node of an allocation.

    Attributes:
        address: its IPv4 address, '' if the login node cannot resolve its name.
        port: that of its slurmd, 0 if unknown.
    """

    name: str
    address: str
    port: int
    state: str


def nodes_in(text: str) -> list[SlurmNode]:
    """Return the nodes printed by `commands.nodes`, in the order of the allocation.

    Raises:
        InfraError: the port of a node is not a number.
    """
    facts: list[dict[str, str]] = []
    resolved: list[str] = []
    for line in text.splitlines():
        if line.startswith("NodeName="):
            # The first of each: texts of administrators, such as Reason and Comment, are at the end.
            facts.append(dict(reversed(re.findall(r"(?:^| )([A-Za-z]+)=(\S*)", line))))
        elif address := re.match(r"([\d.]+) +STREAM\b", line):
            if address[1] == NEXT:
                resolved.append("")
            elif resolved:
                resolved[-1] = resolved[-1] or address[1]
    addresses = iter(resolved)
    nodes = []
    for fields in facts:
        host = fields.get("NodeAddr", "")
        if re.search(r"[^\d.]", host):
            host = next(addresses, "")
        name, port = fields["NodeName"], fields.get("Port") or "0"
        if not (port.isascii() and port.isdigit()):
            raise InfraError.of_node(name, f"scontrol show node printed Port={port}; expected a number")
        nodes.append(SlurmNode(name, host, int(port), fields.get("State", "")))
    return nodes


def key_of(message: str) -> str:
    """Return the key of the cluster file that a message of sbatch is about; '' for none."""
    return next((key for key, pattern in _KEYS if pattern.search(message)), "")


def may_pass(message: str) -> bool:
    """Whether a message is about a slurmctld that does not respond: the request may be repeated."""
    return _PASSING.search(message) is not None

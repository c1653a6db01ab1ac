"""Every named fault and every fault of the review is in the injector's catalogue, or left out for a reason."""

from tests.faults.catalogue import FAULTS
from tests.support.faults import table

NAMES = frozenset(fault.name for fault in FAULTS)
# Named fault (docs/faults.md) -> faults of the catalogue.
NAMED: dict[str, tuple[str, ...]] = {
    "worker crash": ("message", "exception"),
    "worker killed": ("KILL worker",),
    "worker killed once": ("KILL worker",),
    "launcher SIGKILLed": ("KILL launcher",),
    "one rank hangs": ("hang", "busy hang"),
    "run deadline passed": ("budget",),
    "run cancelled": ("Ctrl-C", "marked failed"),
    "link down for 20 s": ("link short", "link long"),
    "link down permanently": ("link for good",),
    "sshd killed": ("sshd restarts", "sshd for good"),
    "node reboot": ("reboot",),
    "disk full": ("disk full",),
    "wrong host key": ("host key",),
    "two controllers for one node": ("second controller",),
    "controller killed, not restarted": ("KILL controller",),
    "metrics database locked for 30 s": ("database locked",),
    "metrics database unavailable for 30 s": ("database closed",),
    "1 GB of log": ("nan behind a flood",),
    "binary garbage in a log": ("rubbish", "carriage returns"),
    "Airflow: scheduler killed": ("KILL scheduler",),
    "Airflow: worker killed": ("KILL workers",),
    "Airflow: triggerer killed": ("KILL triggerer",),
    "Airflow: api-server killed": ("KILL api-server",),
    "Airflow: one task cleared": ("task cleared",),
    "Airflow: queued run deleted": ("queued run deleted",),
}
# Fault of the review of random faults -> faults of the catalogue.
REVIEW: dict[str, tuple[str, ...]] = {
    "a rank leaves early with exit code 0": ("leaves",),
    "all ranks leave early": ("all leave",),
    "nan behind 64 MiB of log": ("nan behind a flood",),
    "nan": ("nan", "inf"),
    "shutdown of a node": ("shutdown",),
    "TERM to the runner": ("TERM runner",),
    "reap from another database": ("reaped",),
    "reap while a run is running": ("reaped here",),
    "an exit without a message": ("exit 1",),
    "a stopped rank, launcher, runner, watch": ("STOP worker", "STOP launcher", "STOP runner", "STOP watch"),
    "the controller's disk is full": ("disk full here",),
    "a daemon without marks": ("daemon",),
    "a rank that ignores TERM": ("hang, deaf to TERM",),
    "200 children and zombies": ("many processes",),
    "a truncated runner file": ("runner file cut", "runner file cut before"),
    "sshd is away between steps": ("sshd restarts",),
    "a log that is a FIFO": ("log becomes a FIFO",),
    "a log that is a link to /dev/zero": ("log becomes /dev/zero",),
    "an artefact that is a FIFO or a link to /dev/zero": ("weights are a FIFO", "weights are /dev/zero"),
    "planted links to files outside of the workspace": ("log becomes a secret",),
    "weights of 0 bytes": ("empty weights",),
    "rubbish in legs.jsonl": ("rubbish in legs.jsonl",),
    "a fake exit record": ("fake exit record",),
    "a closed pipe": ("closed output",),
    "an ASCII terminal": ("ASCII terminal",),
    "INT, TERM, HUP, also three times": ("Ctrl-C", "Ctrl-C three times", "TERM controller", "HUP controller"),
    "packet loss, one direction, resets": ("packet loss", "one way short", "one way long", "resets"),
    "a flapping link": ("flapping link",),
    "a frozen node": ("frozen node",),
    "two runs at once": ("second run",),
    "two controllers at once": ("second controller",),
    "a full disk, no inodes, a read-only workspace": ("disk full", "no inodes", "read-only workspace"),
    "a memory limit": ("out of memory",),
    "host key and login": ("host key", "login refused"),
    "banner and .bashrc": ("login banner", "login script"),
    "job folder, workspace, slot locks, claims": (
        "jobs removed",
        "workspace removed",
        "slot locks",
        "claims removed",
    ),
}
# Faults that the injector leaves out -> why.
LEFT_OUT = {
    "node unreachable at start": "a run that never starts has no moment to draw; the named fault tests it",
    "ten runs for four nodes": "eleven runs at once are too slow for one case of many; the named fault tests it",
    "1 GB of output": "a case would take minutes; `nan behind a flood` writes 80 MiB",
    "MaxStartups, 16 nodes": "needs 16 nodes, a case has two",
    "clock 10 minutes ahead": "libfaketime needs a helper on the node, which the check for leftovers would report",
    "Airflow: worker shut down": "`KILL workers` ends the same processes at any moment",
    "Airflow: worker unresponsive": "needs another setting of the scheduler, which all cases share",
    "Airflow: one worker slot": "a setting of Airflow that all cases share",
    "review: clocks up to 400 days off": "libfaketime, as above",
    "review: 64 kbit/s": "needs a queueing discipline of the kernel that is not everywhere",
    "review: large packets lost during an upload": "tests/cluster/test_nothing_left.py tests it",
    "review: a respawner, another user, a PID namespace": "tests/cluster/test_nothing_left.py tests what is found",
    "review: the database deleted or immutable": "tests/cluster/test_own_trouble.py tests it",
    "review: the database moved away": "for the run the same as `database closed` and `database locked`",
    "review: the forwarding policy of Docker": "a property of the machine, not of a run",
    "review: a loss that is no number": "the lies of docs/liars.md test it",
}


def test_every_named_fault_is_drawn_or_left_out_for_a_reason() -> None:
    assert {fault.name for fault in table.FAULTS} <= NAMED.keys() | LEFT_OUT.keys()
    assert not NAMED.keys() & LEFT_OUT.keys()
    assert NAMED.keys() <= {fault.name for fault in table.FAULTS}, "a named fault that is gone"


def test_replacements_of_faults_are_in_the_catalogue() -> None:
    wanted = {name for names in (*NAMED.values(), *REVIEW.values()) for name in names}
    assert wanted <= NAMES, wanted - NAMES
    assert all(LEFT_OUT.values())

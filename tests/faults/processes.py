"""Signals to processes of a run, sent from outside."""

import signal

from tests.faults.fault import FAILED, HANG, INFRA, KILLED, NODE_LOST, NONE, Fault
from tests.faults.world import LAUNCHER, World

SHELLS = ("/bin/bash", "bash -c", "sh -c")
# What finds each process of a job on a node.
TARGETS = {
    "worker": (("train.py",), (LAUNCHER, *SHELLS)),
    "launcher": ((LAUNCHER,), SHELLS),
    "runner": (("runner-", " daemon "), SHELLS),
    "watch": (("runner-", " --resume "), SHELLS),  # `watch`, or the `begin` that became one
}


# A stopped rank makes no progress, and without the launcher no rank's end is seen: `hang`, which is `failed`. A
# stopped runner is as silent as a lost node. A watch is replaced, and the run shows no trace of it.
STOPPED: dict[str, tuple[frozenset[str], frozenset[str], bool]] = {
    "worker": (FAILED, HANG, False),
    "launcher": (FAILED, HANG, False),
    "runner": (INFRA, NODE_LOST, True),
    "watch": (frozenset(), NONE, True),
}


def _send(target: str, number: signal.Signals) -> object:
    words, without = TARGETS[target]

    def strike(world: World) -> None:
        world.signal(number, *words, without=without)

    return strike


def _all(number: signal.Signals) -> object:
    def strike(world: World) -> None:
        pids = [str(one.pid) for one in world.nodes.processes(world.target)]
        if pids:
            world.nodes.exec(world.target, ["kill", f"-{int(number)}", *pids])

    return strike


def _stopped(target: str) -> Fault:
    right, classes, healed = STOPPED[target]
    return Fault(
        f"STOP {target}",
        f"the {target} gets SIGSTOP and never SIGCONT",
        right,
        strike=_send(target, signal.SIGSTOP),  # type: ignore[arg-type]
        healed=healed,
        classes=classes,
    )


FAULTS = (
    Fault(
        "KILL worker",
        "a rank gets SIGKILL",
        INFRA,
        strike=_send("worker", signal.SIGKILL),
        healed=True,
        classes=KILLED,
    ),
    Fault(
        "TERM worker",
        "a rank gets SIGTERM",
        INFRA,
        strike=_send("worker", signal.SIGTERM),
        healed=True,
        classes=KILLED,
    ),
    Fault(
        "KILL launcher",
        "the launcher gets SIGKILL",
        INFRA,
        strike=_send("launcher", signal.SIGKILL),
        healed=True,
        classes=KILLED,
    ),
    Fault(
        "TERM launcher",
        "the launcher gets SIGTERM",
        INFRA,
        strike=_send("launcher", signal.SIGTERM),
        healed=True,
        classes=KILLED,
    ),
    Fault(
        "KILL runner",
        "the node runner gets SIGKILL",
        INFRA,
        strike=_send("runner", signal.SIGKILL),
        healed=True,
        classes=NODE_LOST,
    ),
    Fault(
        "TERM runner",
        "the node runner gets SIGTERM",
        INFRA,
        strike=_send("runner", signal.SIGTERM),
        healed=True,
        classes=NODE_LOST,
    ),
    Fault(
        "KILL watch",
        "the watching process gets SIGKILL",
        frozenset(),
        strike=_send("watch", signal.SIGKILL),
        healed=True,
        classes=NONE,
    ),
    _stopped("worker"),
    _stopped("launcher"),
    _stopped("runner"),
    _stopped("watch"),
    Fault(
        "TERM all",
        "every process of the node gets SIGTERM",
        INFRA,
        strike=_all(signal.SIGTERM),
        healed=True,
        classes=NODE_LOST,
    ),
    Fault(
        "KILL all",
        "every process of the node gets SIGKILL",
        INFRA,
        strike=_all(signal.SIGKILL),
        healed=True,
        classes=NODE_LOST,
    ),
)

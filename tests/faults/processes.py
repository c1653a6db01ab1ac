"""Signals to processes of a run, sent from outside."""

import signal

from tests.faults.fault import EITHER, INFRA, Fault
from tests.faults.world import LAUNCHER, World

SHELLS = ("/bin/bash", "bash -c", "sh -c")
# What finds each process of a job on a node.
TARGETS = {
    "worker": (("train.py",), (LAUNCHER, *SHELLS)),
    "launcher": ((LAUNCHER,), SHELLS),
    "runner": (("runner-", " daemon "), SHELLS),
    "watch": (("runner-", " --resume "), SHELLS),  # `watch`, or the `begin` that became one
}


def _send(target: str, number: signal.Signals) -> object:
    words, without = TARGETS[target]

    def strike(world: World) -> None:
        world.signal(number, *words, without=without)

    return strike


def _all(number: signal.Signals) -> object:
    def strike(world: World) -> None:
        pids = [str(one.pid) for one in world.nodes.processes(world.victim)]
        if pids:
            world.nodes.exec(world.victim, ["kill", f"-{int(number)}", *pids])

    return strike


def _stopped(target: str) -> Fault:
    right = INFRA if target in ("runner", "watch") else EITHER
    return Fault(
        f"STOP {target}",
        f"the {target} gets SIGSTOP and never SIGCONT",
        right,
        strike=_send(target, signal.SIGSTOP),  # type: ignore[arg-type]
        healed=target in ("runner", "watch"),
    )


FAULTS = (
    Fault("KILL worker", "a rank gets SIGKILL", INFRA, strike=_send("worker", signal.SIGKILL), healed=True),
    Fault("TERM worker", "a rank gets SIGTERM", INFRA, strike=_send("worker", signal.SIGTERM), healed=True),
    Fault(
        "KILL launcher", "the launcher gets SIGKILL", INFRA, strike=_send("launcher", signal.SIGKILL), healed=True
    ),
    Fault(
        "TERM launcher", "the launcher gets SIGTERM", INFRA, strike=_send("launcher", signal.SIGTERM), healed=True
    ),
    Fault(
        "KILL runner", "the node runner gets SIGKILL", INFRA, strike=_send("runner", signal.SIGKILL), healed=True
    ),
    Fault(
        "TERM runner", "the node runner gets SIGTERM", INFRA, strike=_send("runner", signal.SIGTERM), healed=True
    ),
    Fault(
        "KILL watch",
        "the watching process gets SIGKILL",
        INFRA,
        strike=_send("watch", signal.SIGKILL),
        healed=True,
    ),
    _stopped("worker"),
    _stopped("launcher"),
    _stopped("runner"),
    _stopped("watch"),
    Fault("TERM all", "every process of the node gets SIGTERM", INFRA, strike=_all(signal.SIGTERM), healed=True),
    Fault("KILL all", "every process of the node gets SIGKILL", INFRA, strike=_all(signal.SIGKILL), healed=True),
)

"""Faults of the packets between a node and the others."""

import time

from tests.faults.fault import GONE, INFRA, Fault
from tests.faults.nodes import LONG, SHORT, undo
from tests.faults.world import World


def _loss_rule(percent: int) -> object:
    def strike(world: World) -> None:
        share = str(percent / 100)
        _add_rule(world, "INPUT", "-m", "statistic", "--mode", "random", "--probability", share, "-j", "DROP")

    return strike


def _one_way(world: World) -> None:
    """Packets of one direction are lost; connections stay open."""
    _add_rule(world, world.rng.choice(("INPUT", "OUTPUT")), "-j", "DROP")


def _reset(world: World) -> None:
    """Every connection is reset, and no new one can be made."""
    _add_rule(world, "INPUT", "-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset")


def _add_rule(world: World, *rule: str) -> None:
    world.execute("iptables", "-A", *rule)
    world.undo.append(lambda: world.nodes.exec(world.target, ["iptables", "-D", *rule]) and None)


def _flap(world: World) -> None:
    for _ in range(world.rng.randint(2, 5)):
        world.nodes.cut(world.target)
        time.sleep(world.rng.uniform(0.2, 1.5))  # how long it is down is the fault
        world.nodes.restore(world.target)
        time.sleep(world.rng.uniform(0.2, 1.5))


FAULTS = (
    Fault(
        "packet loss",
        "30 % of the node's packets are lost",
        INFRA,
        strike=_loss_rule(30),
        healed=True,
        in_training=False,
        classes=GONE,
    ),
    Fault(
        "one way short",
        "packets in one direction are lost for 1 to 4 s",
        INFRA,
        strike=_one_way,
        heal=undo,
        away_s=SHORT,
        healed=True,
        in_training=False,
        classes=GONE,
    ),
    Fault(
        "one way long",
        "packets in one direction are lost for longer than the controller waits",
        INFRA,
        strike=_one_way,
        heal=undo,
        away_s=LONG,
        healed=True,
        in_training=False,
        classes=GONE,
    ),
    Fault(
        "resets",
        "connections to the node are reset for 1 to 4 s",
        INFRA,
        strike=_reset,
        heal=undo,
        away_s=SHORT,
        healed=True,
        in_training=False,
        classes=GONE,
    ),
    Fault(
        "flapping link",
        "the link goes down and up two to five times",
        INFRA,
        strike=_flap,
        healed=True,
        in_training=False,
        classes=GONE,
    ),
)

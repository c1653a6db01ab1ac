"""One case through `tipcflow run`: fresh nodes, a run, one or two faults, and what is there afterwards."""

import contextlib
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.faults.catalogue import Draw
from tests.faults.oracle import Seen
from tests.faults.paddle import NODE_PYTHON, train_for_real
from tests.faults.world import TRACEBACK, World, doubled_or_lost, stored
from tests.support.certify import Site
from tests.support.faults.running import Running
from tests.support.faults.told import told_failure

from devcluster.local_nodes.nodes import local_nodes
from tipcflow.domain import InfraError

# A run that lasts longer than this is stuck.
END_S = 150.0
PADDLE_END_S = 300.0
CLEAN_S = 30.0
SECOND_SHARE = 0.25


def run_case(draw: Draw, folder: Path) -> Seen:
    """Make the case and judge nothing: what was seen."""
    python = NODE_PYTHON if draw.paddle else Path(sys.executable)
    with local_nodes(folder / "nodes", python=python) as nodes:
        site = Site(folder / "user", nodes)
        world = World(
            folder,
            site,
            random.Random(f"{draw.seed}/{draw.number}/acts"),
            victim=draw.victim,
            rank=draw.rank,
            iteration=draw.iteration,
        )
        try:
            return _run(draw, world)
        finally:
            for undo in world.undo:
                with contextlib.suppress(Exception):
                    undo()


def _run(draw: Draw, world: World) -> Seen:
    prepare(draw, world)
    began = time.monotonic()
    running = Running(world.site)
    world.controller = running.process
    struck = strike(draw, world, lambda: running.over)
    end_s = PADDLE_END_S if draw.paddle else END_S
    with contextlib.suppress(Exception):
        running.end(end_s)
    running.kill()
    seen = look(world, running.output, started_at=began, run=running.id_or_none)
    seen.code = None if running.code is None or running.code < 0 else running.code
    if running.code is None:
        seen.status, seen.reason = "stuck", f"no end after {end_s:.0f} s"
    seen.struck = struck
    # A healthy node again, and then nothing may be left.
    # What a full disk prevented can be made up for when there is room again.
    if seen.status == "none":
        undo_all(world)
    seen.left = left_behind(world, unsaid=seen.status == "none")
    if world.rng.random() < SECOND_SHARE and not world.away and not seen.left:
        seen.second = second_run(world)
    return seen


def prepare(draw: Draw, world: World) -> None:
    """Prepare the training and the faults; a second fault that edits what the first has edited is left out."""
    world.set_up()
    if draw.paddle:
        train_for_real(world)
    first, *others = draw.faults
    first.prepare(world)
    for fault in others:
        try:
            fault.prepare(world)
        except AssertionError as error:
            world.notes.append(f"{fault.name}: {error}")


def strike(draw: Draw, world: World, over: Callable[[], bool], *, begin_s: float = 120.0) -> bool:
    """Wait for the moment, make the faults, heal them; whether the run was still there.

    Args:
        begin_s: how long the training may take to reach the moment.
    """
    acts = [fault for fault in draw.faults if fault.strike.__name__ != "nothing"]
    if not acts:
        return True
    if all(fault.in_training for fault in acts):
        there = world.wait(world.reached, begin_s, over)
    else:
        world.wait(lambda: False, draw.delay_s, over)
        there = not over()
    if not there:
        world.notes.append("the run was over before the fault")
        return False
    for fault in acts:
        fault.strike(world)
    healing = [fault for fault in acts if fault.heal is not None]
    if healing:
        time.sleep(draw.away_s)  # how long it is away is the fault
        for fault in healing:
            assert fault.heal is not None
            with contextlib.suppress(InfraError):  # of two faults of one kind the first has healed both
                fault.heal(world)
    return not world.notes


def look(world: World, output: str, *, started_at: float, run: str = "") -> Seen:
    """The verdict, and the ledger against the database.

    Args:
        run: its id; '' for the newest run of the user.
    """
    seconds = time.monotonic() - started_at
    with world.site.store() as store:
        known = store.known_runs([run]).values() if run else store.runs(limit=5)
        runs = [one for one in known if one.trigger != "confirm"]
    traceback = bool(TRACEBACK.search(output))
    if not runs:
        return Seen("not started", reason=output[-300:], traceback=traceback, seconds=seconds)
    found = runs[0]
    told = told_failure(world.site, found)
    status = found.status.value if found.status else "none"
    kept = stored(world.site, found.id)
    return Seen(
        status,
        reason=found.reason,
        failure=told.failure,
        culprit=told.culprit,
        complete=world.complete(),
        differences=[*world.differences, *doubled_or_lost(world.ledger(), kept, passed=status == "pass")],
        traceback=traceback,
        seconds=seconds,
        notes=list(world.notes),
    )


def _busy(world: World) -> bool:
    """Whether a further run of the case is still running."""
    return any(other.poll() is None for other in world.others)


def left_behind(world: World, *, unsaid: bool = False) -> list[str]:
    """Processes on reachable nodes that are there `CLEAN_S` after the end, and leases of reachable nodes.

    Args:
        unsaid: whether the run ended without a status.
    """
    names = [node.name for node in world.nodes.cluster.nodes if node.name not in world.away]

    def there() -> list[str]:
        return [f"{name}: {one.cmdline[:120]}" for name in names for one in world.nodes.processes(name)]

    def leases() -> list[str]:
        with world.site.store() as store:
            held = [one for one in store.leases() if one.node in reachable and one.live(time.time())]
        return [f"lease of {one.run}" for one in held]

    # The lease of a node that the controller could not list is kept until it runs out.
    reachable = {world.nodes.cluster.node(name).address for name in names if name not in world.refused}
    deadline = time.monotonic() + CLEAN_S
    # A controller that could not write its verdict could not give its leases back either: they run out.
    while (there() or (unsaid and leases()) or _busy(world)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return there() + leases()


def undo_all(world: World) -> None:
    """End the faults that last."""
    for undo in world.undo:
        undo()
    world.undo.clear()


def second_run(world: World) -> str:
    """The status of a healthy run of the same user after the fault."""
    undo_all(world)
    suite = world.site.suite
    for name in ("train.py",):
        (suite / name).write_bytes((Path(__file__).parents[1] / "support" / "toy_suite" / name).read_bytes())
    ended = world.site.run()
    return ended.run.status.value if ended.run.status else "none"

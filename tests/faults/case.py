"""One case through `tipcflow run`: fresh nodes, a run, one or two faults, and what is there afterwards."""

import contextlib
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.faults.catalogue import Draw
from tests.faults.losses import NODE_OF, doubled_or_lost, on_nodes, out_of_reach, stored
from tests.faults.oracle import UNSAID, UNSTARTED, Seen
from tests.faults.paddle import NODE_PYTHON, train_for_real
from tests.faults.world import TRACEBACK, World
from tests.support.certify import TIPCFLOW, Site
from tests.support.faults.running import Running

from devcluster.local_nodes.nodes import local_nodes
from tipcflow.domain import InfraError, Run
from tipcflow.domain.run.attempt import Attempt
from tipcflow.domain.run.failure import Failure
from tipcflow.domain.run_documents import CertificateDocument, FailuresDocument
from tipcflow.store import Store

# A run that lasts longer than this is stuck.
END_S = 150.0
PADDLE_END_S = 300.0
CLEAN_S = 30.0
# A line of the progress is read this much later than it is written.
LINE_S = 0.3
SECOND_SHARE = 0.25


def run_case(draw: Draw, folder: Path) -> Seen:
    """Make the case without judging it: return the observations."""
    python = NODE_PYTHON if draw.paddle else Path(sys.executable)
    with local_nodes(folder / "nodes", python=python) as nodes:
        site = Site(folder / "user", nodes)
        world = World(
            folder,
            site,
            random.Random(f"{draw.seed}/{draw.number}/acts"),
            target=draw.target,
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
    struck = strike(draw, world, lambda: running.over, begun=lambda: bool(running.id_or_none))
    end_s = PADDLE_END_S if draw.paddle else END_S
    with contextlib.suppress(Exception):
        running.end(end_s)
    running.kill()
    seen = look(draw, world, running.output, started_at=began, run=running.id_or_none)
    seen.code = running.code
    seen.output = running.output[-6000:]
    if running.code is None:
        seen.status, seen.reason = "stuck", f"no end after {end_s:.0f} s"
    seen.struck = struck and not _all_steps_had_ended(running, world)
    # A healthy node again, and then nothing may be left.
    # Whatever the full disk prevented can be repeated once space is free.
    unsaid = seen.status == UNSAID
    if unsaid:
        undo_all(world)
    # Slots of a node that could not be listed at the end stay leased until the lease expires.
    seen.left = left_behind(world, expires=unsaid or "could not be listed" in seen.reason)
    if unsaid:
        get_status(draw, world, seen, running.output)
    if world.rng.random() < SECOND_SHARE and not world.away and not seen.left:
        seen.second = second_run(world)
    return seen


def _all_steps_had_ended(running: Running, world: World) -> bool:
    """Whether the fault came when only the end of the run was missing: a complete verdict is right then."""
    at = running.time_of("infer_gpu: ")
    late = at is not None and at <= world.struck_at + LINE_S
    if late:
        world.notes.append("all steps had ended before the fault")
    return late


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


def strike(
    draw: Draw, world: World, over: Callable[[], bool], *, begun: Callable[[], bool], begin_s: float = 120.0
) -> bool:
    """Wait for the moment, make the faults, heal them; whether the run was still there.

    Args:
        begun: whether there is a first sign of the run.
        begin_s: how long the training may take to reach the moment.
    """
    acts = [fault for fault in draw.faults if fault.strike.__name__ != "nothing"]
    if not acts:
        return True
    if all(fault.in_training for fault in acts):
        there = world.wait(world.reached, begin_s, over)
    else:
        if not draw.before:
            world.wait(begun, begin_s, over)
        world.wait(lambda: False, draw.delay_s, over)
        there = not over()
    if not there:
        world.notes.append("the run was over before the fault")
        return False
    world.struck_at = time.time()
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


def look(draw: Draw, world: World, output: str, *, started_at: float, run: str = "", shown: bool = True) -> Seen:
    """The verdict, and the ledger against the database.

    Args:
        run: its id; '' for the newest run of the user.
        shown: whether `output` holds the notes about logs that could not be fetched.
    """
    seconds = time.monotonic() - started_at
    traceback = bool(TRACEBACK.search(output))
    with world.site.store() as store:
        known = store.runs.known([run]).values() if run else store.runs.newest(limit=5)
        runs = [one for one in known if one.trigger != "confirm"]
        if not runs:
            return Seen(UNSTARTED, reason=output[-300:], traceback=traceback, seconds=seconds)
        found = runs[0]
        attempts = store.attempts.of(found.id)
        failures = stored_failures(store, found, attempts)
        certified = differing_classes(store, found, failures)
    status = found.status.value if found.status else UNSAID
    first = next((failure for _, failure in failures), None)
    gone = out_of_reach(attempts, output if shown else None)
    for fault in draw.faults:
        gone |= {
            (attempt, rank)
            for attempt, rank in world.ledger()
            if fault.loses_logs and NODE_OF[rank] == world.target
        }
    if any(fault.unfetched for fault in draw.faults):
        nodes = world.nodes.cluster.nodes
        gone |= on_nodes({node.name: Path(node.workspace) for node in nodes}, world.ledger())
    return Seen(
        status,
        reason=found.reason,
        failure=first.failure_class.value if first else "",
        root_cause=first.root_cause if first else "",
        classes=[failure.failure_class.value for _, failure in failures],
        certified=certified,
        complete=world.complete(),
        differences=[
            *world.differences,
            *doubled_or_lost(world.ledger(), stored(world.site, found.id), passed=status == "pass", gone=gone),
        ],
        traceback=traceback,
        seconds=seconds,
        leaked=leaks(world),
        notes=list(world.notes),
    )


def stored_failures(store: Store, run: Run, attempts: list[Attempt]) -> list[tuple[str, Failure]]:
    """(step, failure) of every attempt that has one, in order, and of a run that ended before its first step."""
    document = store.documents.get(run.id, FailuresDocument) or FailuresDocument()
    found = document.of(attempts)
    before = [("", document.before)] if document.before else []
    return before + [(key.step, failure) for key, failure in found.items()]


def differing_classes(store: Store, run: Run, failures: list[tuple[str, Failure]]) -> list[str]:
    """Failures of the certificate whose class is not that of the step's last stored failure."""
    certificate = store.documents.get(run.id, CertificateDocument)
    last = {step: failure.failure_class.value for step, failure in failures}
    steps = certificate.root.get("steps", []) if certificate else []
    return [
        f"{step['id']}: {step['failure']['class']} instead of {last.get(step['id'], 'no class')}"
        for step in steps
        if step["failure"] and step["failure"]["class"] != last.get(step["id"])
    ]


def leaks(world: World) -> list[str]:
    """Files of the controller that hold the secret of a planted link."""
    if not world.secret:
        return []
    files = (path for path in (world.site.home / "runs").rglob("*") if path.is_file())
    return [str(path) for path in files if world.secret.encode() in path.read_bytes()]


def get_status(draw: Draw, world: World, seen: Seen, output: str) -> None:
    """Follow the documentation for a run without a status, and inspect the result.

    The next command gives the status; `nodes reap` collects what a killed controller left on nodes.
    """
    commands = [["runs", "--json"]]
    if any(fault.status_by == "reap" for fault in draw.faults):
        commands.append(["nodes", "reap"])
    for words in commands:
        command = [str(TIPCFLOW), *words]
        subprocess.run(command, env=world.site.env, capture_output=True, timeout=120, check=False)
    after = look(draw, world, output, started_at=time.monotonic())
    seen.later, seen.complete = after.status, after.complete
    seen.reason, seen.failure, seen.root_cause, seen.classes = (
        after.reason,
        after.failure,
        after.root_cause,
        after.classes,
    )
    seen.differences, seen.certified, seen.notes = after.differences, after.certified, after.notes


def _busy(world: World) -> bool:
    """Whether a further run of the case is still running."""
    return any(other.poll() is None for other in world.others)


def left_behind(world: World, *, expires: bool = False) -> list[str]:
    """Processes on reachable nodes that are there `CLEAN_S` after the end, and leases of reachable nodes.

    Args:
        expires: whether leases may be left until they expire.
    """
    names = [node.name for node in world.nodes.cluster.nodes if node.name not in world.away]

    def there() -> list[str]:
        return [f"{name}: {one.cmdline[:120]}" for name in names for one in world.nodes.processes(name)]

    def leases() -> list[str]:
        with world.site.store() as store:
            held = [one for one in store.leases.all() if one.node in reachable and one.live(time.time())]
        return [f"lease of {one.run}" for one in held]

    # The lease of a node that the controller could not list is kept until it runs out.
    reachable = {world.nodes.cluster.node(name).address for name in names if name not in world.refused}
    deadline = time.monotonic() + CLEAN_S
    # A controller that could not write its verdict could not give its leases back either: they run out.
    while (there() or (expires and leases()) or _busy(world)) and time.monotonic() < deadline:
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
    for name in ("train.py", "deploy/infer.py"):
        (suite / name).write_bytes((Path(__file__).parents[1] / "support" / "toy_suite" / name).read_bytes())
    ended = world.site.run()
    return ended.run.status.value if ended.run.status else "none"

"""One case through Airflow: fresh nodes, a run of the seat's chain, faults, what is left afterwards."""

import contextlib
import random
import sys
import time
from pathlib import Path

from tests.faults.airflow.seat import Seat, SeatSite
from tests.faults.airflow.side import Side
from tests.faults.case import left_behind, look, prepare, strike, undo_all
from tests.faults.catalogue import Draw
from tests.faults.oracle import Seen
from tests.faults.paddle import NODE_PYTHON
from tests.faults.world import WAITS, World
from tests.support import postgres

from devcluster.airflow.stack import Stack
from devcluster.local_nodes.nodes import local_nodes
from tipcflow.domain import ConfigError

# A component of Airflow is away for up to half a minute on a busy machine: nodes wait longer than that.
AIRFLOW_WAITS = {**WAITS, "node_lease_s": 90}
BEGIN_S = 120.0
END_S = 400.0
VERDICT_S = 120.0
# What nothing in a case changes until the run ends.
POLL_S = 0.25


def run_case(drawn: Draw, folder: Path, seat: Seat, stack: Stack, server: postgres.Server, url: str) -> Seen:
    """Make the case without judging it: return the observations."""
    python = NODE_PYTHON if drawn.paddle else Path(sys.executable)
    with local_nodes(folder / "nodes", python=python) as nodes:
        site = SeatSite(seat, nodes, home=stack.airflow_home.parent, database_url=url)
        rng = random.Random(f"{drawn.seed}/{drawn.number}/acts")
        world = World(folder, site, rng, drawn.target, drawn.rank, drawn.iteration, waits=dict(AIRFLOW_WAITS))
        side = Side(site, stack, server)
        world.airflow = side
        side.connect_nodes()
        try:
            return _run(drawn, world, side)
        finally:
            with contextlib.suppress(Exception):
                undo_all(world)
            _end(side)


def _run(drawn: Draw, world: World, side: Side) -> Seen:
    prepare(drawn, world)
    began = time.monotonic()
    if side.dag_run is None:
        side.dag_run = side.begin()
    requested = [0.0, False]

    def over() -> bool:
        now = time.monotonic()
        if now - requested[0] > POLL_S:
            requested[:] = [now, side.over]
        return bool(requested[1])

    # A task of Airflow takes seconds to start: the moment is counted from the first step on.
    world.wait(lambda: bool(world.run_folders()), BEGIN_S, over)
    struck = strike(drawn, world, over, begun=lambda: True, begin_s=BEGIN_S)
    ended = world.wait(lambda: side.over, END_S, lambda: False)
    report = ended and world.wait(lambda: _verdict(side), VERDICT_S if side.known else 0, lambda: False)
    seen = look(drawn, world, "", started_at=began, run=side.run.run, shown=False)
    if not report and seen.status == "none":
        seen.status, seen.reason = "stuck", f"no verdict; tasks: {side.states(side.run)}"
    seen.struck = struck and not _all_steps_had_ended(side, world)
    seen.left = left_behind(world)
    return seen


def _all_steps_had_ended(side: Side, world: World) -> bool:
    """Whether the fault came when only the verdict was missing: a complete verdict is right then."""
    with contextlib.suppress(ConfigError), side.site.store() as store:
        run = side.run_of(side.run)
        ends = [attempt.ended_at for attempt in store.attempts.of(run.id)]
        planned = {step.id for step in store.plans.get(run.id).steps}
        complete = planned <= set(store.steps.statuses(run.id)) and all(ends)
        late = complete and world.struck_at > 0 and max(end or 0.0 for end in ends) < world.struck_at
        if late:
            world.notes.append("all steps had ended before the fault")
        return late
    return False


def _verdict(side: Side) -> bool:
    with contextlib.suppress(ConfigError):
        return side.run_of(side.run).status is not None
    return False


def _end(side: Side) -> None:
    """A case that went wrong may not continue."""
    with contextlib.suppress(Exception):
        if side.dag_run is not None and not side.over:
            side.mark("failed")
            side.ended(side.run, 60)

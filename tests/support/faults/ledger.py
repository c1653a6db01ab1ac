"""Whether what reached the controller is in the database, exactly once."""

import gzip
import re
from collections import Counter

from tests.support.certify import Site

from tipcflow.domain import Run
from tipcflow.execute.collect.folders import step_folder

LOSS = b", loss: "
ITERATION = re.compile(rb"\[Epoch.*?\]")


def stored_once(site: Site, run: Run) -> list[str]:
    """Losses of training logs that were fetched, against those that are stored; what differs, in words."""
    with site.store() as store:
        plan = store.plans.get_or_none(run.id)
        stored = store.measurements.of(run.id)
    keys = Counter((m.step, m.leg, m.attempt, m.node, m.rank, m.metric, m.phase, m.ordinal) for m in stored)
    wrong = [f"stored {count} times: {key}" for key, count in keys.items() if count > 1]
    for step in plan.steps if plan else ():
        if not step.world_size:
            continue
        folder = step_folder(site.home, run.id, step.id)
        last = max((m.attempt for m in stored if m.step == step.id), default=0)
        local = step.world_size // len(step.nodes)
        for log in folder.glob("*/files/**/workerlog.*"):
            node = log.relative_to(folder).parts[0]
            rank = step.nodes.index(node) * local + int(log.name.split(".")[1])
            with gzip.open(log) if log.suffix == ".gz" else log.open("rb") as file:
                # A launcher that appends to an earlier attempt's log prints the same iterations again.
                lines = len({ITERATION.search(line)[0] for line in file if LOSS in line and line.endswith(b"\n")})
            mine = (step.id, last, node, rank, "loss")
            kept = sum((m.step, m.attempt, m.node, m.rank, m.metric) == mine for m in stored)
            if lines != kept:
                wrong.append(f"rank {rank}: {lines} losses in the log, {kept} stored")
    return wrong

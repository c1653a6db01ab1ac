"""Log processing of a run: bulk reading, and storing every number.

Called by parse_speed.py, in a process of its own: `python run_logs.py FOLDER` reads FOLDER/workerlog.0, .1, … as
the logs of one node's training, with the code that closes a step, into a new SQLite database beside them, and
prints JSON.
"""

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

from tipcflow.domain import Compat, JobCommand, JobSpec, Node, Plan, Run, SshTarget, Step, StepKind
from tipcflow.execute.collect.collect import collect, step_folder
from tipcflow.execute.job.member import Member
from tipcflow.execute.node.fetch import Fetched
from tipcflow.store import Store

NODE, STEP = "a", "train"


class Here:
    """A node whose logs are already local, because fetching depends on the network."""

    node = Node(name=NODE, address=NODE, ssh=SshTarget(alias=NODE), workspace="/w", python="/usr/bin/python3")

    def fetch(self, *_: object, **__: object) -> Fetched:
        """Does nothing."""
        return Fetched()


def prepared(folder: Path) -> tuple[Store, Run, Step, Member]:
    """A run whose training has ended."""
    logs = sorted(folder.glob("workerlog.*"))
    store = Store.open(f"sqlite:///{folder / 'metrics.db'}")
    run = Run(
        id="20261122t080000-clas-0a1b", chain="clas", suite="s", model="m", mode="lite_train_lite_infer",
        cluster="c", trigger="cli", created_at=1.0,
    )  # fmt: skip
    step = Step(id=STEP, kind=StepKind.TRAIN, nodes=(NODE,), world_size=len(logs))
    plan = Plan(
        chain="clas", suite="s", dialect="", model="m", params_file="", params_sha256="", mode=run.mode,
        compat=Compat.SPEC, cluster="c", steps=(step,),
    )  # fmt: skip
    store.runs.create(run, plan)
    store.attempts.open(run.id, STEP, [NODE], 1.0)
    spec = JobSpec(
        run=run.id, step=STEP, attempt=1, node=NODE, fence=1, workspace="/w", root="/w",
        commands=(JobCommand(text="true", cwd="."),),
    )  # fmt: skip
    here: Any = Here()
    files = step_folder(folder / "home", run.id, STEP) / NODE / "files" / "log"
    files.mkdir(parents=True, exist_ok=True)
    for log in logs:
        (files / log.name).hardlink_to(log)
    return store, run, step, Member(here, spec, listener=lambda _: None, reconnect_s=0)


def warm_up() -> None:
    """Import once before measuring."""


def main(folder: Path) -> None:
    """Measure."""
    warm_up()
    store, run, step, member = prepared(folder)
    size = sum(log.stat().st_size for log in folder.glob("workerlog.*")) / 1e6
    here: Any = member.session
    stored: list[int] = []
    wall, cpu = time.perf_counter(), time.process_time()
    collected = collect(
        step, [member], here, home=folder / "home", attempt=1, log_format="auto",
        keep=lambda several: stored.append(store.series.add(several)),
    )  # fmt: skip
    store.measurements.add(collected.measurements)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    read: dict[str, float] = {"db_mb": (folder / "metrics.db").stat().st_size / 1e6}
    wall_2, cpu_2 = time.perf_counter(), time.process_time()
    facts = store.history.facts(run.id)  # what a judgement reads
    read |= {"facts_s": time.perf_counter() - wall_2, "facts_cpu_s": time.process_time() - cpu_2}
    read |= {"facts": len(facts.measurements)}
    cpu_2 = time.process_time()
    store.history.past_run(run.id)
    read |= {"past_cpu_s": time.process_time() - cpu_2}
    read |= {"peak_with_facts_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    store.close()
    lost = collected.lost
    print(
        json.dumps(
            {"mb": size, "mb_s": size / wall, "cpu_mb_s": size / cpu, "peak_mb": peak, "samples": sum(stored)}
            | read
            | {"lost": lost}
        )
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))

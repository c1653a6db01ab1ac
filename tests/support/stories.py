"""Builders of example runs, for tests of the store, reports and pages."""

import functools
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tipcflow.domain import (
    Command,
    EndReason,
    ExitRecord,
    Leg,
    Measurement,
    NodeFacts,
    Phase,
    Plan,
    Run,
    Status,
    Step,
    StepKind,
    Variant,
)
from tipcflow.store import Store

TRAIN = "norm_train_cpu/train"
INFER = "norm_train_cpu/infer_cpu"
T0 = 1_795_000_000.0


def a_run(run_id: str = "20261121t093005-mobilenet-0a1b", **fields: Any) -> Run:
    known = {
        "chain": "sample/mobilenet_v3_small/train_infer_python",
        "suite": "sample",
        "model": "mobilenet_v3_small",
        "mode": "lite_train_lite_infer",
        "cluster": "local",
        "nodes": ("node-a", "node-b"),
        "created_at": T0,
    }
    return Run(id=run_id, **(known | fields))


def a_plan(**fields: Any) -> Plan:
    """Training on two nodes, then two legs on CPU and one on a GPU that is not there."""
    legs = (
        Leg(id="cpu_onednn_on", command=Command(text="python infer.py --mkldnn=True"), device="cpu", onednn=True),
        Leg(
            id="cpu_onednn_off", command=Command(text="python infer.py --mkldnn=False"), device="cpu", onednn=False
        ),
    )
    train = Step(
        id=TRAIN,
        kind=StepKind.TRAIN,
        variant="norm_train_cpu",
        nodes=("node-a", "node-b"),
        commands={
            name: Command(text=f"python -m paddle.distributed.launch # {name}") for name in ("node-a", "node-b")
        },
        world_size=4,
    )
    infer = Step(
        id=INFER, kind=StepKind.INFER_CPU, variant="norm_train_cpu", nodes=("node-a",), legs=legs, after=(TRAIN,)
    )
    known = {
        "chain": "sample/mobilenet_v3_small/train_infer_python",
        "suite": "sample",
        "dialect": "clas",
        "model": "mobilenet_v3_small",
        "params_file": "test_tipc/configs/mobilenet_v3_small/train_infer_python.txt",
        "params_sha256": "0" * 64,
        "mode": "lite_train_lite_infer",
        "compat": "spec",
        "nodes": ("node-a", "node-b"),
        "variants": (Variant(id="norm_train_cpu", trainer="norm_train", node_count=2, world_size=4),),
        "steps": (train, infer),
    }
    return Plan(**(known | fields))


def plan_without(left_out: str) -> Plan:
    """Return the plan of `a_plan` in which a leg is dropped."""
    plan = a_plan()
    train, infer = plan.steps
    legs = tuple(leg.model_copy(update={"not_run": "dropped" * (leg.id == left_out)}) for leg in infer.legs)
    return plan.model_copy(update={"steps": (train, infer.model_copy(update={"legs": legs}))})


def losses(
    run_id: str, values: list[float], *, node: str = "node-a", attempt: int = 1, **fields: Any
) -> list[Measurement]:
    """One training loss per iteration of rank 0."""
    known: dict[str, Any] = {"step": TRAIN, "rank": 0, "metric": "loss", "phase": Phase.TRAIN}
    return [
        Measurement(
            run=run_id,
            node=node,
            attempt=attempt,
            ordinal=ordinal,
            value=value,
            iteration=ordinal,
            **(known | fields),
        )
        for ordinal, value in enumerate(values)
    ]


def a_record(run_id: str, step: str = TRAIN, node: str = "node-a", **fields: Any) -> ExitRecord:
    known: dict[str, Any] = {"reason": EndReason.EXITED, "exit_code": 0, "started_at": T0, "ended_at": T0 + 12.5}
    return ExitRecord(run=run_id, step=step, node=node, **(known | fields))


def some_facts(node: str, **fields: Any) -> NodeFacts:
    known: dict[str, Any] = {
        "hostname": node,
        "os": "Debian GNU/Linux 12",
        "kernel": "6.1.0",
        "cpu_model": "Some CPU @ 2.0 GHz",
        "cpu_count": 4,
        "memory_bytes": 8 << 30,
        "python": "3.11.7",
        "framework": "paddlepaddle",
        "framework_version": "3.3.1",
    }
    return NodeFacts(node=node, **(known | fields))


def record_run(
    store: Any, run: Run | None = None, *, status: Status | None = Status.PASS, left_out: str = ""
) -> Run:
    """Store a whole run that succeeded; return it as stored.

    Args:
        left_out: a leg that the run drops.
    """
    run = run or a_run()
    store.runs.create(run, plan_without(left_out))
    store.nodes.save(run.id, [some_facts("node-a"), some_facts("node-b")])
    number = store.attempts.open(run.id, TRAIN, run.nodes, run.created_at)
    store.measurements.add(losses(run.id, [2.0, 1.0, 0.5]))
    records = [a_record(run.id, node=node) for node in run.nodes]
    store.attempts.close(run.id, TRAIN, number, Status.PASS, "", records, run.created_at + 12.5)
    store.steps.set(run.id, TRAIN, Status.PASS)
    number = store.attempts.open(run.id, INFER, ["node-a"], run.created_at + 13)
    for leg in ("cpu_onednn_on", "cpu_onednn_off"):
        record = a_record(run.id, step=INFER, leg=leg, ended_at=T0 + 2)
        if leg != left_out:
            store.steps.set_leg(run.id, INFER, leg, number, Status.PASS, "", record)
    record = a_record(run.id, step=INFER)
    store.attempts.close(run.id, INFER, number, Status.PASS, "", [record], run.created_at + 18)
    store.steps.set(run.id, INFER, Status.PASS)
    if status is not None:
        store.runs.finish(run.id, status, "", run.created_at + 20)
    return store.runs.get(run.id)


Story = Callable[[Store], object]


def no_runs(store: Store) -> None:
    """The story of a database without rows."""


@functools.cache
def database_of(story: Story) -> bytes:
    """The file of a SQLite database that `story` filled, made once per process: the migrations take 0.2 s of CPU,
    and a story of many runs up to 1 s. Tests get copies."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "template.db")
        if story is not no_runs:
            path.write_bytes(database_of(no_runs))
        with Store.open(f"sqlite:///{path}") as store:
            story(store)
        return path.read_bytes()


def open_store(path: Path, story: Story = no_runs) -> Store:
    """Open a SQLite database; a new one has all tables and the rows of `story`."""
    if not path.exists():
        path.write_bytes(database_of(story))
    return Store.open(f"sqlite:///{path}", migrate=False)


def copy_example(path: Path) -> None:
    """Write the template of a cluster file as the cluster of that file name."""
    text = (Path(__file__).parents[2] / "configs" / "clusters" / "example.yaml").read_text()
    path.write_text(text.replace("name: example\n", f"name: {path.stem}\n"))

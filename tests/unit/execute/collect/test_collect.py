"""What is read of a node's logs, by how its job ended."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import TRAIN, a_plan

from tipcflow.domain import EndReason, ExitRecord, JobCommand, JobSpec, Node
from tipcflow.domain.numbers.series import Series
from tipcflow.execute.collect.collect import collect
from tipcflow.execute.job.hang import progress_of
from tipcflow.execute.job.member import Member
from tipcflow.execute.node.fetch import Fetched

RUN, NODE = "r1", "node-a"
LOG = "".join(f"[Epoch 1, iter: {number}] loss: {2.5 - number / 10}\n" for number in range(5))
SPEC = JobSpec(
    run=RUN, step=TRAIN, attempt=2, node=NODE, fence=1, workspace="/w", root="/w",
    commands=(JobCommand(text="true", cwd="."),),
)  # fmt: skip


class OldLog:
    """Nodes, and a session, of a suite folder that has the worker log of an earlier attempt."""

    node = Node(name=NODE, address="192.0.2.1", workspace="/w", python="/usr/bin/python3")

    def fetch(self, spec: JobSpec, written: Any, folder: Path, **_: Any) -> Fetched:
        path = folder / "files" / "log" / "workerlog.0"
        path.parent.mkdir(parents=True)
        path.write_text(LOG)
        return Fetched()


@pytest.mark.parametrize(
    ("fields", "losses"),
    [
        ({"reason": EndReason.STOPPED}, 0),
        ({"reason": EndReason.REFUSED}, 0),
        ({"reason": EndReason.BARRIER_TIMEOUT}, 0),
        ({"reason": EndReason.STOPPED, "pid": 7}, 5),
        ({"reason": EndReason.EXITED, "pid": 7, "exit_code": 1}, 5),
        ({"reason": EndReason.EXITED, "exit_code": 0}, 5),
    ],
)
def test_a_job_that_never_began_has_no_numbers(tmp_path: Path, fields: dict[str, Any], losses: int) -> None:
    """It was staged and then stopped, because a peer could not start: the log is that of an earlier attempt."""
    step = next(step for step in a_plan().steps if step.id == TRAIN)
    nodes: Any = OldLog()
    member = Member(nodes, SPEC, listener=lambda _: None, reconnect_s=0)
    member.record = ExitRecord(run=RUN, step=TRAIN, attempt=2, node=NODE, **fields)
    found: list[float] = []

    def keep(series: Iterator[Series]) -> None:
        found.extend(value for one in series if one.metric == "loss" for value in one.values)

    collected = collect(step, [member], nodes, home=tmp_path, attempt=2, log_format="models", keep=keep)
    assert (len(found), sum(collected.losses.values())) == (losses, losses)


class SharedLog(OldLog):
    """Nodes, and a session, of a launcher that gives its processes the same output, such as PyTorch's."""

    def fetch(self, spec: JobSpec, written: Any, folder: Path, **_: Any) -> Fetched:
        result = [f"rank {rank} of 4, backend gloo, device cpu, seed 0\n" for rank in (1, 0, 1)]
        lines = [f"[rank {rank}] {line}\n" for line in LOG.splitlines() for rank in (0, 1)]
        path = folder / "logs" / "main.log"
        path.parent.mkdir(parents=True)
        path.write_text("".join(result + lines))
        return Fetched()


def test_every_rank_of_a_shared_log_counts(tmp_path: Path) -> None:
    step = next(step for step in a_plan().steps if step.id == TRAIN)
    nodes: Any = SharedLog()
    member = Member(nodes, SPEC, listener=lambda _: None, reconnect_s=0)
    member.record = ExitRecord(
        run=RUN, step=TRAIN, attempt=2, node=NODE, reason=EndReason.EXITED, pid=7, exit_code=0
    )
    collected = collect(
        step, [member], nodes, home=tmp_path, attempt=2, log_format="models", keep=lambda series: list(series)
    )
    assert [(report.rank, report.world_size, report.node) for report in collected.ranks] == [
        (1, 4, NODE),
        (0, 4, NODE),
    ]
    assert collected.losses == {(NODE, 0): 5, (NODE, 1): 5}


class TopologyLogs(OldLog):
    """Nodes, and a session, of a shell script whose logs have DLPerf's layout; the output has other lines."""

    def fetch(self, spec: JobSpec, written: Any, folder: Path, **_: Any) -> Fetched:
        for name, text in {
            "logs/main.log": LOG * 3,
            "files/logs/bz4/2n1g/r50_b4_fp32_1.log": LOG * 2,
            "files/logs/bz4/2n1g/r50_b4_fp32_2.log": LOG,
        }.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Fetched()


@pytest.mark.parametrize(("artefacts", "losses"), [(("logs/**/2n1g/*.log", "log/workerlog.*"), 5), ((), 15)])
def test_log_in_the_layout_of_topologies_replaces_the_output(
    tmp_path: Path, artefacts: tuple[str, ...], losses: int
) -> None:
    step = next(step for step in a_plan().steps if step.id == TRAIN)
    nodes: Any = TopologyLogs()
    spec = SPEC.model_copy(update={"artefacts": artefacts})
    member = Member(nodes, spec, listener=lambda _: None, reconnect_s=0)
    member.record = ExitRecord(run=RUN, step=TRAIN, attempt=2, node=NODE, reason=EndReason.EXITED, exit_code=0)
    collected = collect(step, [member], nodes, home=tmp_path, attempt=2, log_format="models", keep=list)
    assert sum(collected.losses.values()) == losses


def test_logs_of_topologies_show_progress() -> None:
    step = next(step for step in a_plan().steps if step.id == TRAIN)
    step = step.model_copy(update={"artefacts": ("logs/**/2n1g/*.log", "log/workerlog.*", "output/train.log")})
    assert progress_of(step) == ("logs/**/2n1g/*.log", "log/workerlog.*")

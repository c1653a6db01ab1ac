"""Logs that were appended to, copied, compressed or rotated, and writers that die or meet: counted once, on both
databases."""

import gzip
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support import postgres
from tests.support.stories import T0, TRAIN, a_plan, a_run, losses

from tipcflow.domain import JobCommand, JobSpec, Measurement, Node, SshTarget, Status
from tipcflow.execute.collect.collect import collect
from tipcflow.execute.collect.folders import step_folder
from tipcflow.execute.collect.log_archive import compress_logs
from tipcflow.execute.job.member import Member
from tipcflow.execute.node.fetch import Fetched
from tipcflow.remote.runner.files import safe_name
from tipcflow.store import Store
from tipcflow.store.series.measurements import BATCH

RUN = a_run().id
NODE = "node-a"
LOG = "files/output/launch/workerlog.0"
CONTEND = Path(__file__).parents[3] / "support" / "contend.py"


class Silent:
    """A node whose logs lie here already."""

    node = Node(name=NODE, address=NODE, ssh=SshTarget(alias=NODE), workspace="/w", python="/usr/bin/python3")

    def fetch(self, *_: object, **__: object) -> Fetched:
        return Fetched()


class Training:
    """The training of a run on one node, its logs written by the test."""

    def __init__(self, store: Store, home: Path) -> None:
        self.store, self.home = store, home
        self.step = next(step for step in a_plan().steps if step.id == TRAIN).model_copy(update={"nodes": (NODE,)})
        store.runs.create(a_run(), a_plan())
        self.attempt = store.attempts.open(RUN, TRAIN, [NODE], T0)
        self.folder = step_folder(home, RUN, TRAIN) / NODE

    def write(self, values: list[float], name: str = LOG, *, before: str = "") -> str:
        """A log with a line per value; its text."""
        lines = [f"[Epoch 1, iter: {10 * number}] loss: {value}\n" for number, value in enumerate(values)]
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(before + "".join(lines))
        return path.read_text()

    def close(self) -> int:
        """What the end of the attempt stores."""
        spec = JobSpec(
            run=RUN, step=TRAIN, attempt=self.attempt, node=NODE, fence=1, workspace="/w", root="/w",
            commands=(JobCommand(text="true", cwd="."),),
        )  # fmt: skip
        node: Any = Silent()
        member = Member(node, spec, listener=lambda _: None, reconnect_s=0)
        added = []
        report = collect(
            self.step, [member], node, home=self.home, attempt=self.attempt, log_format="models",
            keep=lambda found: added.append(self.store.series.add(found)),
        )  # fmt: skip
        return sum(added) + self.store.measurements.add(report.measurements)

    def again(self) -> None:
        """Another attempt; the files of this one are put aside."""
        self.store.attempts.close(RUN, TRAIN, self.attempt, Status.FAILED, "", [], T0 + 1)
        step = self.folder.parent
        step.rename(step.with_name(f"{step.name}~{self.attempt}"))
        self.attempt = self.store.attempts.open(RUN, TRAIN, [NODE], T0 + 2)

    def stored(self) -> dict[int, list[float]]:
        """Attempt -> losses."""
        found: dict[int, list[float]] = {}
        for one in self.store.measurements.of(RUN, metric="loss"):
            found.setdefault(one.attempt, []).append(one.value)
        return found


@pytest.fixture
def training(store: Store, tmp_path: Path) -> Training:
    return Training(store, tmp_path / "home")


def test_reading_the_same_logs_again_adds_nothing(training: Training) -> None:
    training.write([3.0, 2.0])
    assert training.close() == 2
    assert training.close() == 0
    training.write([3.0, 2.0, 1.0])
    assert training.close() == 1, "the rest of a log that had not arrived whole"
    assert training.stored() == {1: [3.0, 2.0, 1.0]}


@pytest.mark.parametrize("compressed", [False, True])
def test_a_log_of_an_earlier_attempt_is_stored_once(training: Training, compressed: bool) -> None:
    text = training.write([3.0, 2.0])
    training.close()
    training.again()
    if compressed:
        assert compress_logs(training.home / "runs" / RUN, least=0) == 1
    training.write([4.0, 3.5, 1.5], before=text)
    assert training.close() == 3
    assert training.stored() == {1: [3.0, 2.0], 2: [4.0, 3.5, 1.5]}
    sample = training.store.measurements.of(RUN, attempt=2)[0]
    assert (sample.source, sample.offset) == (f"{NODE}/{LOG}", len(text))


@pytest.mark.parametrize(
    "copy",
    ["files/log/workerlog.0", "files/output/launch/workerlog.0.bak", "files/output/launch/workerlog.0.1"],
)
def test_a_copy_of_a_log_counts_no_line_twice(training: Training, copy: str) -> None:
    training.write([3.0, 2.0, 1.0])
    (training.folder / copy).parent.mkdir(exist_ok=True)
    shutil.copy(training.folder / LOG, training.folder / copy)
    assert training.close() == 3
    assert training.stored() == {1: [3.0, 2.0, 1.0]}


def test_a_copy_that_was_taken_too_early_is_not_read(training: Training) -> None:
    training.write([3.0, 2.0, 1.0])
    training.write([3.0, 2.0], "files/zz/workerlog.0")
    training.write([9.0, 9.0, 9.0, 9.0], "files/output/launch/workerlog.0.old")
    training.close()
    assert training.stored() == {1: [3.0, 2.0, 1.0]}


def test_a_compressed_copy_is_not_read(training: Training) -> None:
    text = training.write([3.0, 2.0])
    (training.folder / f"{LOG}.gz").write_bytes(gzip.compress(text.encode() * 3))
    training.close()
    assert training.stored() == {1: [3.0, 2.0]}


def _child(*words: str) -> "subprocess.Popen[str]":
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, str(CONTEND), *words], text=True, **pipes)


@pytest.mark.process
def test_writer_killed_in_a_transaction_stores_nothing(training: Training, database_url: str) -> None:
    """It dies between two statements of its transaction; who comes then stores all, once."""
    child = _child("die", database_url, RUN, TRAIN, str(BATCH + 10))
    _, result = child.communicate("go\n", timeout=60)
    assert child.returncode == -signal.SIGKILL, result
    assert training.store.measurements.of(RUN) == []
    rows = [
        one for number in range(BATCH + 10) for one in losses(RUN, [float(number)] * 2, metric=f"m{number:05}")
    ]
    assert training.store.measurements.add(rows) == 2 * (BATCH + 10)
    assert training.store.measurements.add(rows) == 0
    assert training.store.measurements.of(RUN) == sorted(rows, key=lambda one: (one.metric, one.ordinal))


@pytest.mark.full
@pytest.mark.process
def test_a_server_that_crashes_has_all_that_was_stored(tmp_path: Path) -> None:
    """The writer keeps running and closes the attempt when the server is back: it stores no sample again."""
    with postgres.running(("max_connections=20", "wal_writer_delay=10s")) as server:
        url = server.create()
        with Store.open(url) as store:
            training = Training(store, tmp_path)
            rows: list[Measurement] = losses(RUN, [float(number) for number in range(500)])
            store.measurements.add(rows)
            server.stop()
            server.start()
            store.attempts.close(RUN, TRAIN, training.attempt, Status.PASS, "", [], T0 + 1)
            assert store.measurements.of(RUN) == rows


def test_folders_of_other_steps_are_not_earlier_attempts(training: Training) -> None:
    """`train~1` of this step only; its name may hold signs of patterns."""
    text = training.write([3.0, 2.0])
    other = training.home / "runs" / RUN / f"{safe_name('other[a]/train')}~1" / NODE / LOG
    other.parent.mkdir(parents=True)
    other.write_text(text)
    training.write([4.0], before=text)
    training.close()
    assert training.stored() == {1: [3.0, 2.0, 4.0]}

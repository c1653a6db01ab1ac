"""What the runner records of logs when an attempt begins, and what the controller makes of it."""

import json
import os
from pathlib import Path

import pytest
from tests.unit.execute.collect.test_spool import ORIGIN, flat

from tipcflow.domain import Measurement
from tipcflow.execute.collect.collect import tail
from tipcflow.execute.collect.deduplicate import recorded
from tipcflow.execute.collect.log_reader import Deadline, own_lines, read_numbers
from tipcflow.remote.runner import before
from tipcflow.remote.runner.before import Before

LOG = "log/workerlog.0"


class Node:
    """A suite's root on a node, and the folder here into which a job's files are fetched."""

    def __init__(self, tmp_path: Path) -> None:
        self.root, self.job = tmp_path / "root", tmp_path / "job"
        self.here = tmp_path / "controller" / "step" / "a"
        for folder in (self.root / "log", self.job, self.here / "files" / "log"):
            folder.mkdir(parents=True)
        self.log = self.root / LOG
        self.runner = self.begin()

    def begin(self) -> Before:
        """Another attempt begins."""
        self.runner = Before(
            str(self.job), {"root": str(self.root), "progress": ["log/workerlog.*"], "artefacts": []}
        )
        self.runner.begin()
        return self.runner

    def append(self, *iterations: int, mode: str = "a", clock: str = "") -> None:
        with self.log.open(mode) as file:
            file.writelines(f"{clock}[Epoch 1, iter: {at}] loss: {at / 10}\n" for at in iterations)

    def counted(self, *, ended: bool = True) -> list[int]:
        """The iterations that count as this attempt's, after its files were fetched."""
        if ended:
            self.runner.end()
        for there, here in (
            (self.job / before.NAME, self.here / before.NAME),
            (self.log, self.here / "files" / LOG),
        ):
            here.unlink(missing_ok=True)
            if there.exists():
                here.write_bytes(there.read_bytes())
        found: list[Measurement] = []
        read_numbers(
            self.here / "files" / LOG, self.here, ORIGIN, "models", rank=0, deadline=Deadline(),
            keep=lambda several: found.extend(item for one in several for item in flat(one)),
        )  # fmt: skip
        return [one.iteration for one in found]


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_first_attempt_counts_whole(node: Node) -> None:
    node.append(1, 2, 3)
    assert node.counted() == [1, 2, 3]


@pytest.mark.parametrize("ended", [True, False])
def test_a_log_that_was_appended_to_counts_from_the_attempts_begin(node: Node, ended: bool) -> None:
    """Also where no file of the first attempt ever came here: its node was lost, or another worker has them."""
    node.append(1, 2, 3, 4)
    node.begin()
    node.append(1, 2, 3)
    assert node.counted(ended=ended) == [1, 2, 3]


def test_a_third_attempt_counts_its_own_lines(node: Node) -> None:
    for iterations in ((1, 2, 3), (1, 2), (1, 2, 3, 4)):
        node.begin()
        node.append(*iterations)
        assert node.counted() == list(iterations)


def test_foreign_content_is_detected_by_the_recorded_bytes(node: Node) -> None:
    node.append(1, 2, 3)
    node.begin()
    text = node.log.read_text()
    node.log.write_text("other\n" + text + text)
    assert node.counted() == [1, 2, 3, 1, 2, 3], "it does not begin with what was there"


def test_an_overwritten_log_counts_completely(node: Node) -> None:
    """A deterministic command: it begins as the previous one."""
    node.append(1, 2)
    runner = node.begin()
    node.append(mode="w")
    runner.poll()
    node.append(1, 2, 3, 4)
    assert node.counted() == [1, 2, 3, 4]


def test_observed_truncation_is_saved_immediately(node: Node) -> None:
    """A node that is lost writes no record at its end."""
    node.append(1, 2)
    runner = node.begin()
    node.append(mode="w")
    runner.poll()
    node.append(1, 2, 3, 4)
    assert node.counted(ended=False) == [1, 2, 3, 4]


def test_an_attempt_that_ends_before_its_first_value_has_none(node: Node) -> None:
    node.append(1, 2, 3)
    node.begin()
    with node.log.open("a") as log:
        log.write("rank 0 of 4, backend gloo\n")
    assert node.counted() == []


def test_a_training_that_continues_from_a_checkpoint_counts_its_own_lines(node: Node) -> None:
    node.append(1, 2, 3)
    node.begin()
    node.append(4, 5)
    assert node.counted() == [4, 5]


def test_a_first_line_that_follows_a_torn_one_counts(node: Node) -> None:
    node.append(1, 2, 3)
    with node.log.open("a") as log:
        log.write("[Epoch 1, iter: 4] lo")
    node.begin()
    node.append(1, 2)
    assert node.counted() == [1, 2]


def test_output_of_an_earlier_attempt_is_not_the_attempts_own(node: Node) -> None:
    def say(message: str) -> None:
        with node.log.open("a") as log:
            log.write(f"rank 0 of 4, backend gloo\n{message}\n")

    say("RuntimeError: NCCL error")
    node.begin()
    say("the data is broken")
    node.counted()
    path = node.here / "files" / LOG
    assert tail(path, node.here) == "rank 0 of 4, backend gloo\nthe data is broken\n"
    lines = [line for _, line in own_lines(path, node.here, Deadline())]
    assert lines == ["rank 0 of 4, backend gloo", "the data is broken"]


def test_of_many_logs_a_fast_overwriting_is_detected_by_its_values(node: Node) -> None:
    """The runner polls the processes once a second, which may be too late."""
    for number in range(before.MOST_POLLED):
        (node.root / "log" / f"workerlog.{number + 1}").write_text("x\n")
    node.append(1, 2)
    node.begin()
    node.append(1, 2, 3, 4, mode="w")
    assert node.counted() == [1, 2, 3, 4]
    node.begin()
    node.append(1, 2)
    assert node.counted() == [1, 2]


def test_truncated_log_counts_completely(node: Node) -> None:
    node.append(1, 2)
    runner = node.begin()
    node.append(mode="w")
    runner.poll()
    node.append(1, 2, 1, 2)
    assert node.counted() == [1, 2, 1, 2]


def test_replaced_log_counts_completely(node: Node) -> None:
    node.append(1, 2)
    node.begin()
    node.log.rename(node.root / "old")
    node.append(1, 2, 1, 2)
    assert node.counted() == [1, 2, 1, 2]


def test_times_of_day_identify_a_training_that_continues_from_a_checkpoint(node: Node) -> None:
    node.append(1, 2, 3, clock="[2026/11/22 10:00:00] ")
    node.begin()
    node.append(4, 5, clock="[2026/11/22 10:05:00] ")
    assert node.counted() == [4, 5]


def test_a_log_that_the_attempt_did_not_touch_is_not_its_own(node: Node) -> None:
    node.append(1, 2)
    node.begin()
    assert node.counted() == []


def test_a_log_rewritten_with_the_same_content_counts(node: Node) -> None:
    node.append(1, 2)
    node.begin()
    text = node.log.read_bytes()
    node.log.write_bytes(text)
    os.utime(node.log, ns=(0, 10**18))
    assert node.counted() == [1, 2]


def test_log_longer_than_the_hashed_part_is_counted(node: Node) -> None:
    node.append(*range(5000))
    node.begin()
    node.append(*range(3000))
    assert node.counted() == list(range(3000))


def test_only_logs_are_recorded(node: Node, tmp_path: Path) -> None:
    for name in ("model.pdparams", "train.log"):
        (node.root / "out").mkdir(exist_ok=True)
        (node.root / "out" / name).write_bytes(b"x")
    os.mkfifo(node.root / "out" / "pipe.log")
    runner = Before(str(node.job), {"root": str(node.root), "artefacts": ["out", "absent/*.log"]})
    runner.begin()
    found = json.loads((node.job / before.NAME).read_text())
    assert list(found["files"]) == ["out/train.log"]
    node.runner = runner


def test_a_record_that_is_torn_is_none(tmp_path: Path) -> None:
    assert recorded(tmp_path) is None
    for text in ("", "{", "[]", '{"files": []}', '{"files": 3}'):
        (tmp_path / before.NAME).write_text(text)
        assert recorded(tmp_path) is None

"""What logs show of progress: which iteration, how long nothing, and whether that is a hang."""

import os
import time
from collections.abc import Callable

import pytest

from tipcflow.remote.runner.hang import Hang
from tipcflow.remote.runner.progress import Progress, iteration_of, last_line, point_of
from tipcflow.remote.runner.ranks import RankEnds, Servers
from tipcflow.remote.runner.workers import Workers

LINES = [
    ("[2026/01/01] ppcls INFO: [Train][Epoch 1/2][Iter: 10/20]lr: 0.1, batch_cost: 0.5", 10),
    ("ppocr INFO: epoch: [1/2], global_step: 12, lr: 0.001, loss: 1.5", 12),
    ("Epoch: [0]  [ 30/100]  eta: 0:01:00  lr: 0.02", 30),
    ("[TRAIN] epoch: 1, iter: 40/100, loss: 0.5", 40),
    ("step 50 loss 1", 50),
    ("Iteration 60, loss 2\nIteration 61, los", 61),
    ("batch_id: 7, loss", 7),
    ("batch_size: 32, 10 iters, steps/s: 3.2, batch_cost: 0.5", None),
    ("loss: nan", None),
    ("step 99999999999999999999", None),
    ("", None),
]


@pytest.mark.parametrize(("line", "expected"), LINES)
def test_last_iteration_of_a_line_is_read(line, expected):
    assert iteration_of(line.encode()) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[Train][Epoch 1/2][Iter: 10/20]lr: 0.1", (1, 10)),
        ("epoch: [3/20], global_step: 12, lr: 0.001", (3, 12)),
        ("Epoch: [0]  [ 30/100]  eta: 0:01:00", (0, 30)),
        ("iter: 5/9, epoch: 4", (4, 5)),
        ("Epoch 7 begins\nstep 1 loss 2\nstep 2 loss 1", (7, 2)),
        ("[Epoch 1, iter: 9] loss: 2\nEpoch 2 begins", (1, 9)),
        ("step 9", (None, 9)),
        ("Epoch 2 begins", (None, None)),
    ],
)
def test_the_epoch_of_the_last_iteration_is_read(text, expected):
    assert point_of(text.encode()) == expected


def test_stacks_that_a_process_wrote_into_its_log_are_not_progress(tmp_path):
    file = tmp_path / "log"
    stacks = (
        "Current thread 0x00007f409860bb80 (most recent call first):\n"
        '  File "/suite/epoch3.py", line 61 in step\n  File "/suite/train.py", line 9 in <module>\n  ...\n'
        '\nThread 0x00007f409860bb80 [loader] (most recent call first):\n  File "<string>", line 1 in <module>\n'
    )
    file.write_text(f"[Epoch 1, iter: 3] loss: 2\n{stacks}")
    assert last_line(str(file)) == "[Epoch 1, iter: 3] loss: 2"
    assert point_of(file.read_bytes()) == (1, 3)


class Clock:
    """A clock that moves only when the test moves it."""

    def __init__(self, monkeypatch):
        self.now = 1000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)


@pytest.fixture
def root(tmp_path):
    """A suite's root with a job folder beside it."""
    (tmp_path / "src" / "log").mkdir(parents=True)
    (tmp_path / "job" / "logs").mkdir(parents=True)
    (tmp_path / "job" / "logs" / "main.log").touch()
    return tmp_path / "src"


class Driven(Progress):
    go: Callable[..., None]


@pytest.fixture
def progress(root, monkeypatch):
    """A command whose workers' logs count, with 10 s of patience; `.go(seconds)` looks once a second."""
    clock = Clock(monkeypatch)
    spec = {"root": str(root), "progress": ["log/workerlog.*"], "hang_s": 10}
    made = Driven(str(root.parent / "job"), spec)
    made.begin("logs/main.log", time.time_ns())

    def go(seconds, every=1.0, writers=()):
        until = clock.now + seconds
        while clock.now < until:
            clock.now += every
            for name in writers:
                with (root / "log" / name).open("a") as log:
                    log.write(f"iter {clock.now:.0f}\n")
            made.poll()

    made.go = go
    return made


def test_all_silent_is_a_hang(progress, root):
    progress.go(9)
    assert progress.silent() == []
    progress.go(2)
    assert progress.silent() == ["logs/main.log"]


def test_a_rank_that_counted_is_the_only_root_cause(progress):
    progress.go(4, writers=["workerlog.0", "workerlog.1"])
    progress.go(12, writers=["workerlog.0"])
    assert progress.silent() == ["log/workerlog.1"]
    assert progress.summary()["log/workerlog.1"]["iteration"] == 1004
    assert progress.summary()["log/workerlog.0"]["idle_s"] == 0


def test_a_rank_that_never_counted_is_not_the_only_root_cause(progress, root):
    (root / "log" / "workerlog.1").write_text("only rank 0 logs\n")
    progress.go(60, writers=["workerlog.0"])
    assert progress.silent() == []


def test_rank_with_the_least_progress_is_named_first(progress, root):
    progress.go(3, writers=["workerlog.0", "workerlog.1"])
    progress.go(1, writers=["workerlog.0"])
    (root / "log" / "workerlog.2").write_text("no word of iterations")
    progress.go(12)
    assert progress.silent() == ["log/workerlog.1", "log/workerlog.0", "log/workerlog.2", "logs/main.log"]


def test_limit_of_zero_disables_hang_detection(progress):
    progress.limit_s = 0
    progress.go(1000)
    assert progress.silent() == []


def test_a_stopped_process_does_not_listen(progress):
    """Time for which the runner or the whole machine was stopped does not count as silence."""
    progress.go(300, every=300)
    assert progress.silent() == []


def test_log_of_an_earlier_attempt_counts_once_written(progress, root):
    old = root / "log" / "workerlog.3"
    old.write_text("iter 7\n")
    os.utime(old, (1, 1))
    progress.go(2)
    assert "log/workerlog.3" not in progress.summary()
    # A clock that was set back: the file still looks old.
    old.write_text("iter 7\niter 8\n")
    os.utime(old, (2, 2))
    progress.go(2)
    assert progress.summary()["log/workerlog.3"]["iteration"] == 8


def test_clocks_do_not_matter(progress, root):
    progress.go(4, writers=["workerlog.0"])
    for when in (1, 4e9):  # set back for decades, and ahead
        os.utime(root / "log" / "workerlog.0", (when, when))
        progress.go(4)
    assert progress.summary()["log/workerlog.0"]["idle_s"] == 8


def test_a_restarted_log_is_progress(progress, root):
    progress.go(8, writers=["workerlog.0"])
    progress.go(8)
    (root / "log" / "workerlog.0").write_text("x")
    progress.go(1)
    assert progress.summary()["log/workerlog.0"] == {
        "size": 1, "idle_s": 0.0, "epoch": None, "iteration": 1008,
    }  # fmt: skip


DUMP = (
    "Current thread 0x00007f409860bb80 (most recent call first):\n"
    '  File "/suite/train.py", line 61 in step\n  ...\n\n'
    "Thread 0x00007f409860bb81 [loader] (most recent call first):\n  <no Python frame>\n"
    "\nExtension modules: numpy._core, torch._C (total: 20)\n"
)


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_stacks_do_not_end_the_silence_of_a_log(progress, root, piece):
    """Any number of stacks may be in the log when it is read: faulthandler writes each word by itself."""
    log = root / "log" / "workerlog.0"
    progress.go(3, writers=["workerlog.0"])
    for start in range(0, len(DUMP), piece):
        with log.open("a") as file:
            file.write(DUMP[start : start + piece])
        progress.go(1)
    idle = progress.summary()["log/workerlog.0"]["idle_s"]
    assert idle == len(range(0, len(DUMP), piece))
    with log.open("a") as file:
        file.write(DUMP)
    progress.go(1)
    assert progress.summary()["log/workerlog.0"] == {
        "size": log.stat().st_size, "idle_s": idle + 1, "epoch": None, "iteration": 1003,
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "iter 1004\n",
        ".",
        "Th\n",
        "Training",
        DUMP + "iter 1004\n",
        "iter 1004\n" + DUMP,
        "x" * 100_000,
        "  " * 40_000 + "x",
    ],
)
def test_output_other_than_repeated_lines_is_progress(progress, root, text):
    progress.go(3, writers=["workerlog.0"])
    progress.go(3)
    with (root / "log" / "workerlog.0").open("a") as file:
        file.write(text)
    progress.go(1)
    assert progress.summary()["log/workerlog.0"]["idle_s"] == 0


def test_linked_logs_count_once_and_launcher_secrets_are_skipped(progress, root):
    os.link(root.parent / "job" / "logs" / "main.log", root / "log" / "workerlog.0")
    (root / "log" / "workerlog.default.abcdef.log").write_text("the whole environment")
    progress.go(2)
    assert list(progress.summary()) == ["logs/main.log"]


def test_a_rank_that_has_done_its_part_does_not_hang(progress, root):
    spec = {"workspace": "", "run": "", "step": "", "attempt": 1, "node": ""}
    hang = Hang(str(root.parent / "job"), spec, Workers(str(root.parent / "job"), spec), progress)
    hang.workers.find = lambda: [Me()]
    progress.go(4, writers=["workerlog.0", "workerlog.1"])
    progress.go(12, writers=["workerlog.0"])
    assert not hang.notice()
    hang.polled_at = 0.0  # a second later
    with (root / "log" / "workerlog.1").open():
        assert hang.notice()
    assert hang.message == (
        "no progress: nothing new in log/workerlog.1 for 12 s, after iteration 1004; 1 other is active"
    )


class Me:
    """This process, as the process table has it."""

    pid = os.getpid()

    def var(self, name):
        return ""


def test_the_last_line_of_garbage_is_read(tmp_path):
    file = tmp_path / "log"
    file.write_bytes(b"a\n" + b"x" * 100_000 + b"\rlast \xff one\r\n\n")
    assert last_line(str(file)) == "last � one"
    assert last_line(str(tmp_path)) == ""
    file.write_bytes(b"y" * 100_000)
    assert last_line(str(file)) == "y" * 300


class Busy:
    """The processes of a command, and how often they were probed."""

    helpers: set = set()
    statuses: dict = {}

    def __init__(self):
        self.looks = 0
        self.ends, self.servers = RankEnds(), Servers("/nowhere", {})

    def find(self):
        self.looks += 1
        return []


def test_processes_are_inspected_once_a_second_while_a_rank_is_silent(progress, monkeypatch):
    """It has done its part, and stays silent for as long as the others continue."""
    workers = Busy()
    found = Hang("/nowhere", {}, workers, progress)
    monkeypatch.setattr(found, "held", lambda procs, name: False)
    progress.go(4, writers=["workerlog.0", "workerlog.1"])
    progress.go(12, writers=["workerlog.0"])
    assert progress.silent()
    for _ in range(100):  # five seconds of the runner's ticks
        progress.go(0.05, every=0.05, writers=["workerlog.0"])
        assert not found.notice()
    assert 5 <= workers.looks <= 6


def test_a_hang_is_ended_also_where_no_evidence_can_be_collected(progress, monkeypatch):
    def full(*_words, **_options):
        raise BlockingIOError(11, "no more processes")

    monkeypatch.setattr("tipcflow.remote.runner.hang.subprocess.Popen", full)
    found = Hang("/nowhere", {"hang_wait_s": 5}, Busy(), progress)
    progress.go(12)
    assert found.notice()
    found.collect("hang", "no progress")
    assert not found.over()
    progress.go(6)
    assert found.over()

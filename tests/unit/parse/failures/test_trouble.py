"""The end of a log shows the cause: every rule by its own sample, and samples that must match no rule."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipcflow.domain import FailureClass
from tipcflow.parse.failures.excerpt import error_excerpt
from tipcflow.parse.failures.failure import find_failure
from tipcflow.parse.failures.rules import RULES, Rule

FINE = "[Epoch 1, iter: 3] loss: 2.08571, avg_batch_cost: 0.1 sec\n" * 5


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_reads_its_own_sample(rule: Rule) -> None:
    found = find_failure(f"{FINE}{rule.sample}\n")
    assert found is not None
    assert (found.rule, found.failure_class, found.is_collateral) == (
        rule.name,
        rule.failure_class,
        rule.is_collateral,
    )
    assert found.log_line == rule.sample[:300]


def test_every_rule_has_a_unique_name_and_a_source() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.source for rule in RULES)


@pytest.mark.parametrize("text", ["", "\n", FINE, "epoch 3 done\nsaving\n", "0 errors, all reset by hand\n"])
def test_no_trouble_is_reported(text: str) -> None:
    assert find_failure(text) is None


CHILD = """Traceback (most recent call last):
  File "<string>", line 1, in <module>
  File "/usr/lib/python3.11/multiprocessing/spawn.py", line 122, in spawn_main
    exitcode = _main(fd, parent_sentinel)
  File "/usr/lib/python3.11/multiprocessing/synchronize.py", line 115, in __setstate__
    self._semlock = _multiprocessing.SemLock._rebuild(*state)
FileNotFoundError: [Errno 2] No such file or directory
"""
TRANSFORMED = """Traceback (most recent call last):
  File "/w/src/to_static.py", line 9, in <module>
    main()
TypeError: In transformed code:

    File "/w/src/net.py", line 100, in forward
        self.predict = F.sigmoid(x)
    File "/e/paddle/functional.py", line 5, in sigmoid
        return _C_ops.sigmoid(x)

    TypeError: (InvalidType) sigmoid(): argument (position 1) must be Value, but got Variable
"""


def test_helper_process_that_lost_its_parent_is_not_the_reason() -> None:
    """AutoLog starts a process that dies after its parent: the parent's exception is the reason, in any order."""
    own = _traceback("ValueError: The number 1 of time stamps must be larger than warmup: 2")
    for text in (own + CHILD, CHILD + own):
        found = find_failure(text)
        assert found is not None
        assert (found.failure_class, found.log_line) == (
            FailureClass.CODE_ERROR,
            "ValueError: The number 1 of time stamps must be larger than warmup: 2",
        )
    alone = find_failure(CHILD)
    assert alone is not None
    assert alone.failure_class is FailureClass.DATA_MISSING


def test_innermost_exception_of_a_message_is_the_reason() -> None:
    found = find_failure(TRANSFORMED)
    assert found is not None
    assert found.failure_class is FailureClass.CODE_ERROR
    assert (
        found.log_line
        == "TypeError: (InvalidType) sigmoid(): argument (position 1) must be Value, but got Variable"
    )


@pytest.mark.parametrize(
    "exception",
    [
        "ValueError: The device should not be 'gpu', since PaddlePaddle is not compiled with CUDA",
        "AssertionError: Torch not compiled with CUDA enabled",
    ],
)
def test_framework_without_cuda_is_the_environment(exception: str) -> None:
    found = find_failure(_traceback(exception))
    assert found is not None
    assert (found.failure_class, found.log_line) == (FailureClass.ENVIRONMENT, exception)


def _traceback(exception: str) -> str:
    return f'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    main()\n{exception}\n'


@pytest.mark.parametrize(
    ("text", "kind", "result"),
    [
        (_traceback("ValueError: bad label"), FailureClass.CODE_ERROR, "ValueError: bad label"),
        (_traceback("AssertionError"), FailureClass.CODE_ERROR, "AssertionError"),
        # The suite's own module: a code error, not the node's.
        (
            _traceback("ModuleNotFoundError: No module named 'ppcls.arch'"),
            FailureClass.CODE_ERROR,
            "ModuleNotFoundError: No module named 'ppcls.arch'",
        ),
        # torchrun writes the rank before every line.
        (
            "".join(f"[rank1]: {line}\n" for line in _traceback("ValueError: bad label").splitlines()),
            FailureClass.CODE_ERROR,
            "ValueError: bad label",
        ),
        # A peer's end noticed while the process ended of an error of its own.
        (
            "NCCL WARN Connection reset by peer\n" + _traceback("KeyError: 'x'") + "Connection reset by peer\n",
            FailureClass.CODE_ERROR,
            "KeyError: 'x'",
        ),
        # A handled error does not end a training.
        (
            _traceback("FileNotFoundError: [Errno 2] No such file or directory: 'cache'")
            + "going on without\n"
            + _traceback("ValueError: bad label"),
            FailureClass.CODE_ERROR,
            "ValueError: bad label",
        ),
        # A failure caused by a full disk may end in an error of another kind.
        (
            "OSError: [Errno 28] No space left on device\n" + _traceback("RuntimeError: cannot save"),
            FailureClass.DISK,
            "OSError: [Errno 28] No space left on device",
        ),
        # A script continues after an error; the error that ended it is at the end.
        (
            "rm: cannot remove 'old': No such file or directory\n" + "unpacking\n" * 30 + "wrong md5\n",
            None,
            "",
        ),
        (
            "cat: data/list.txt: No such file or directory\n",
            FailureClass.DATA_MISSING,
            "cat: data/list.txt: No such file or directory",
        ),
    ],
)
def test_causes_before_consequences(text: str, kind: FailureClass | None, result: str) -> None:
    found = find_failure(text)
    assert (found and found.failure_class, found.log_line if found else "") == (kind, result)


@given(st.text(max_size=300))
def test_any_text_is_read_without_an_error(text: str) -> None:
    found = find_failure("Traceback (most recent call last):\n" + text)
    assert found is None or len(found.log_line) <= 300


def test_secrets_in_the_reported_line_are_masked() -> None:
    url = "https://b.example.com/w.tar?X-Amz-Signature=0123abcd&token=SECRET123"
    found = find_failure(_traceback(f"requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: {url}"))
    assert found is not None
    assert found.log_line.endswith("url: https://b.example.com/w.tar?X-Amz-Signature=***&token=***")
    refused = find_failure(f"{FINE}OSError: [Errno 28] No space left on device: 'https://ci:hunter2@host/x'\n")
    assert refused is not None
    assert "https://ci:***@host/x" in refused.log_line


# The worker's traceback and torchrun's own behind it, as PyTorch 2.x prints them when a worker fails
# (torch/distributed/elastic/multiprocessing/errors); shortened, the paths are synthetic.
SUMMARY = """E1123 10:00:00.000000 139 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 0 (pid: 12) of binary: /usr/bin/python3
Traceback (most recent call last):
  File "/usr/local/bin/torchrun", line 8, in <module>
    sys.exit(main())
  File "/env/torch/distributed/launcher/api.py", line 264, in launch_agent
    raise ChildFailedError(
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-23_10:00:00
  host      : a
  rank      : 0 (local_rank: 0)
  exitcode  : 1 (pid: 12)
  error_file: <N/A>
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""  # noqa: E501
CLOSED = "RuntimeError: [../gloo/transport/tcp/pair.cc:534] Connection closed by peer [192.0.2.2]:5555"
INTERRUPTED = """Traceback (most recent call last):
  File "/env/torch/distributed/elastic/multiprocessing/api.py", line 76, in _terminate_process_handler
    raise SignalException(f"Process {os.getpid()} got signal: {sigval}", sigval=sigval)
torch.distributed.elastic.multiprocessing.api.SignalException: Process 4242 got signal: 15
"""


@pytest.mark.parametrize(
    ("exception", "kind", "rule", "is_collateral"),
    [
        ("ValueError: bad label", FailureClass.CODE_ERROR, "", False),
        (
            "ModuleNotFoundError: No module named 'torchvision'",
            FailureClass.ENVIRONMENT,
            "package missing",
            False,
        ),
        (
            "FileNotFoundError: [Errno 2] No such file or directory: '/data/x'",
            FailureClass.DATA_MISSING,
            "file missing",
            False,
        ),
        (CLOSED, FailureClass.COMMUNICATION, "peer went away", True),
    ],
)
def test_summary_of_torchrun_does_not_hide_the_error_of_a_rank(
    exception: str, kind: FailureClass, rule: str, is_collateral: bool
) -> None:
    own = "".join(f"[rank0]: {line}\n" for line in _traceback(exception).splitlines())
    found = find_failure(FINE + own + SUMMARY)
    assert found is not None
    assert (found.failure_class, found.rule, found.is_collateral) == (kind, rule, is_collateral)
    assert found.log_line == exception
    assert exception in error_excerpt(FINE + own + SUMMARY)


def test_summary_of_torchrun_does_not_hide_a_message_without_a_traceback() -> None:
    waits = "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE)"
    found = find_failure(f"{FINE}{waits}\n{SUMMARY}")
    assert found is not None
    assert (found.rule, found.log_line) == ("peer is behind", waits)
    assert waits in error_excerpt(f"{FINE}{waits}\n{SUMMARY}")


def test_summary_of_torchrun_counts_if_a_rank_reports_nothing() -> None:
    found = find_failure(FINE + SUMMARY)
    assert found is not None
    assert found.failure_class is FailureClass.CODE_ERROR
    assert "ChildFailedError" in found.log_line
    assert "failed (exitcode: 1) local_rank: 0" in error_excerpt(FINE + SUMMARY)
    killed = "traceback : Signal 9 (SIGKILL) received by PID 12"
    found = find_failure(FINE + re.sub("traceback : .*", killed, SUMMARY))
    assert found is not None
    assert (found.failure_class, found.log_line) == (FailureClass.KILLED, killed)


def test_interrupted_launcher_is_not_an_error() -> None:
    assert find_failure(FINE + INTERRUPTED) is None
    found = find_failure(_traceback(CLOSED) + INTERRUPTED)
    assert found is not None
    assert found.is_collateral


# What NCCL's watchdog in PyTorch 2.x prints before it aborts its process, and what faulthandler of CPython 3.11
# prints then; the texts are synthetic.
ABORTED = """[rank0]:[E ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600042 milliseconds before timing out.
terminate called after throwing an instance of 'c10::DistBackendError'
"""  # noqa: E501


def _fatal(word: str, threads: int, frames: int) -> str:
    stack = "".join(f'  File "/suite/m{number}.py", line {number} in f\n' for number in range(frames))
    dumps = f"Thread 0x00007f409860bb80 (most recent call first):\n{stack}\n" * threads
    return (
        f"Fatal Python error: {word}\n\n{dumps}Current thread 0x00007f409860bb81 (most recent call first):\n"
        "  <no Python frame>\n\nExtension modules: numpy._core._multiarray_umath, torch._C (total: 20)\n"
    )


@pytest.mark.parametrize(("threads", "frames"), [(1, 3), (1, 12), (40, 30)])
def test_a_rank_that_nccl_aborted_after_a_timeout_is_collateral(threads: int, frames: int) -> None:
    native = "".join(f"frame #{number}: c10d::ProcessGroupNCCL + 0x3{number}\n" for number in range(30))
    found = find_failure(FINE + ABORTED + native + _fatal("Aborted", threads, frames))
    assert found is not None
    assert (found.rule, found.is_collateral, found.waited) == ("peer is behind", True, True)


@pytest.mark.parametrize(("word", "rule"), [("Aborted", "abort"), ("Segmentation fault", "crash")])
def test_a_crash_is_found_above_its_stacks(word: str, rule: str) -> None:
    found = find_failure(FINE + _fatal(word, 4, 30))
    assert found is not None
    assert (found.failure_class, found.rule, found.log_line) == (
        FailureClass.CODE_ERROR,
        rule,
        f"Fatal Python error: {word}",
    )

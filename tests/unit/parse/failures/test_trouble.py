"""The end of a log tells what went wrong: every rule by its own sample, and what no rule may be misled by."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipcflow.domain import FailureClass
from tipcflow.parse.failures.failure import find_failure
from tipcflow.parse.failures.rules import RULES, Rule

FINE = "[Epoch 1, iter: 3] loss: 2.08571, avg_batch_cost: 0.1 sec\n" * 5


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_reads_its_own_sample(rule: Rule) -> None:
    found = find_failure(f"{FINE}{rule.sample}\n")
    assert found is not None
    assert (found.rule, found.failure_class, found.victim) == (rule.name, rule.failure_class, rule.victim)
    assert found.said == rule.sample[:300]


def test_every_rule_has_a_name_of_its_own_and_a_source() -> None:
    assert len({rule.name for rule in RULES}) == len(RULES)
    assert all(rule.source for rule in RULES)


@pytest.mark.parametrize("text", ["", "\n", FINE, "epoch 3 done\nsaving\n", "0 errors, all reset by hand\n"])
def test_nothing_is_told(text: str) -> None:
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
        assert (found.failure_class, found.said) == (
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
        found.said == "TypeError: (InvalidType) sigmoid(): argument (position 1) must be Value, but got Variable"
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
    assert (found.failure_class, found.said) == (FailureClass.ENVIRONMENT, exception)


def _traceback(exception: str) -> str:
    return f'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    main()\n{exception}\n'


@pytest.mark.parametrize(
    ("text", "kind", "said"),
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
        # An error that was handled is no reason to end.
        (
            _traceback("FileNotFoundError: [Errno 2] No such file or directory: 'cache'")
            + "going on without\n"
            + _traceback("ValueError: bad label"),
            FailureClass.CODE_ERROR,
            "ValueError: bad label",
        ),
        # What a full disk broke is told by an error of something else.
        (
            "OSError: [Errno 28] No space left on device\n" + _traceback("RuntimeError: cannot save"),
            FailureClass.DISK,
            "OSError: [Errno 28] No space left on device",
        ),
        # A script continues after an error; what it ended for stands at the end.
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
def test_causes_before_consequences(text: str, kind: FailureClass | None, said: str) -> None:
    found = find_failure(text)
    assert (found and found.failure_class, found.said if found else "") == (kind, said)


@given(st.text(max_size=300))
def test_any_text_is_read_without_an_error(text: str) -> None:
    found = find_failure("Traceback (most recent call last):\n" + text)
    assert found is None or len(found.said) <= 300


def test_secrets_in_the_line_that_tells_it_are_masked() -> None:
    url = "https://b.example.com/w.tar?X-Amz-Signature=0123abcd&token=SECRET123"
    found = find_failure(_traceback(f"requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: {url}"))
    assert found is not None
    assert found.said.endswith("url: https://b.example.com/w.tar?X-Amz-Signature=***&token=***")
    refused = find_failure(f"{FINE}OSError: [Errno 28] No space left on device: 'https://ci:hunter2@host/x'\n")
    assert refused is not None
    assert "https://ci:***@host/x" in refused.said

"""Which rank is behind, from what every node looked like: the stacks are as faulthandler and py-spy print them."""

from typing import Any

import pytest

from tipcflow.parse.failures.hang_evidence import behind, hardware, innermost, was_silent

WAITS = """Thread 0x00007f5b33c41b80 (most recent call first):
  File "/env/paddle/distributed/communication/stream/all_reduce.py", line 51 in _all_reduce_in_dygraph
  File "/env/paddle/distributed/communication/all_reduce.py", line 89 in all_reduce
  File "/suite/train.py", line 7 in <module>
"""
LOADS = """Thread 0x00007f27ff1c7b80 (most recent call first):
  File "/env/threading.py", line 320 in run

Current thread 0x00007f27ff1c7b80 (most recent call first):
  File "/suite/reader.py", line 36 in prepare_batch
  File "/suite/train.py", line 53 in <module>
"""
SPY = """Process 4242: python train.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 4242 (idle): "MainThread"
    prepare_batch (reader.py:36)
    <module> (train.py:53)
"""


def log(rank: int | str, iteration: int | None, *, idle_s: float = 120.0, epoch: int | None = 1) -> dict[str, Any]:
    # The last line is not evidence: the process may have written its stacks behind its last iteration.
    seen = {"log": "workerlog.0", "rank": str(rank), "epoch": epoch, "iteration": iteration, "idle_s": idle_s}
    return {**seen, "last_line": 'File "train.py", line 61 in <module>'}


def process(rank: int | str, stack: str) -> dict[str, Any]:
    return {"pid": 4242, "rank": str(rank), "stack": stack}


def test_the_rank_whose_log_ends_first() -> None:
    seen = {"a": {"logs": [log("", None), log(0, 41)]}, "b": {"logs": [log(1, 40)]}}
    found = behind(seen)
    assert found is not None
    assert (found.node, found.rank) == ("b", 1)
    assert found.why == "rank 1 on node b is at epoch 1 iteration 40, other ranks at epoch 1 iteration 41"


def test_the_only_running_rank_is_behind_the_ranks_that_have_ended() -> None:
    ended = log("", 5, epoch=2)
    found = behind({"a": {"logs": [log(0, 1), ended]}, "b": {}})
    assert found is not None
    assert (found.node, found.rank) == ("a", 0)
    assert found.why == "rank 0 on node a is at epoch 1 iteration 1, other ranks at epoch 2 iteration 5"
    assert behind({"a": {"logs": [log(0, 5, epoch=2), log("", 1)]}}) is None, "the other rank left early"
    output = {**ended, "log": "logs/main.log"}
    assert behind({"a": {"logs": [log(0, 1), output]}}) is None, "the launcher's output belongs to no rank"


def test_iterations_may_restart_in_every_epoch() -> None:
    found = behind({"a": {"logs": [log(0, 1, epoch=3)]}, "b": {"logs": [log(1, 40, epoch=2)]}})
    assert found is not None
    assert found.node == "b"


def test_logs_without_epochs() -> None:
    found = behind({"a": {"logs": [log(0, 3, epoch=None)]}, "b": {"logs": [log(1, 2, epoch=None)]}})
    assert found is not None
    assert found.why == "rank 1 on node b is at iteration 2, other ranks at iteration 3"


@pytest.mark.parametrize("stack", [LOADS, SPY])
def test_the_rank_that_is_elsewhere_while_the_others_wait(stack: str) -> None:
    seen = {
        "a": {"logs": [log(0, 40)], "processes": [process("", LOADS), process(0, WAITS)]},
        "b": {"logs": [log(1, 40)], "processes": [process(1, stack)]},
    }
    found = behind(seen)
    assert found is not None
    assert (found.node, found.rank) == ("b", 1)
    assert "reader.py:36" in found.why
    assert "prepare_batch" in found.why


def test_the_first_silent_rank_is_named() -> None:
    seen = {"a": {"logs": [log(0, None, idle_s=120)]}, "b": {"logs": [log(1, None, idle_s=300)]}}
    found = behind(seen)
    assert found is not None
    assert (found.rank, found.why) == (1, "rank 1 on node b is silent for longest, 300 s")


def test_a_rank_that_never_counts_is_not_silent_while_others_count() -> None:
    """Many ranks never print: their silence is not evidence."""
    seen = {"a": {"logs": [log(0, 400, idle_s=0.4)]}, "b": {"logs": [log(1, None, idle_s=880)]}}
    assert behind(seen) is None
    assert not was_silent(seen, 30.0)
    assert was_silent({**seen, "b": {"logs": [log(1, 399, idle_s=31)]}}, 30.0)
    two = {"a": {"logs": [log(0, 40), log(1, None, idle_s=600)]}, "b": {"logs": [log(2, 40, idle_s=240)]}}
    found = behind(two)
    assert found is not None
    assert (found.node, found.rank) == ("b", 2)


def test_silence_is_compared_at_one_time() -> None:
    """The evidence of two nodes may be collected seconds apart."""
    seen = {"a": {"t": 1000.0, "logs": [log(0, 40)]}, "b": {"t": 1018.0, "logs": [log(1, 40, idle_s=138)]}}
    assert behind(seen) is None
    seen["b"]["logs"] = [log(1, 40, idle_s=120)]
    found = behind(seen)
    assert found is not None
    assert (found.rank, found.why) == (0, "rank 0 on node a is silent for longest, 138 s")
    seen["b"].pop("t")  # evidence of an older runner
    assert behind(seen) is None


@pytest.mark.parametrize(
    "seen",
    [
        {},
        {"a": {}, "b": {"logs": None, "processes": None}},
        {"a": {"logs": [log(0, 40)]}, "b": {"logs": [log(1, 40, idle_s=121)]}},
        {"a": {"logs": [log(0, 3, epoch=None)]}, "b": {"logs": [log(1, 2)]}},
        {"a": {"processes": [process(0, LOADS)]}, "b": {"processes": [process(1, LOADS)]}},
        {"a": {"processes": [process(0, WAITS)]}, "b": {"processes": [process(1, WAITS)]}},
        {"a": {"logs": [{"rank": None, "iteration": None}], "processes": [{"stack": None}]}},
    ],
)
def test_no_rank_is_named_without_a_reason(seen: dict[str, Any]) -> None:
    assert behind(seen) is None


def test_innermost_frame_of_a_stack_is_returned() -> None:
    assert innermost(LOADS) == "reader.py:36 (prepare_batch)"
    assert innermost(SPY) == "prepare_batch (reader.py:36)"
    assert innermost("") == ""


def test_a_broken_gpu_is_reported() -> None:
    xid = "[ 812.3] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."
    assert hardware({"a": {"kernel": []}, "b": {"kernel": ["eth0 up", xid]}}) == f"node b: {xid}"
    assert hardware({"a": {}}) == ""

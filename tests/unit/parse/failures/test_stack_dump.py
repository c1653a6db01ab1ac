"""Lines of stacks, as faulthandler of CPython 3.11 and 3.14 writes them."""

from tipcflow.parse.failures.stack_dump import without_stacks

FATAL = """Fatal Python error: Aborted

Thread 0x00007f409860bb80 [loader] (most recent call first):
  File "/usr/lib/python3.14/threading.py", line 373 in wait
  ...

Current thread 0x00007f409860bb81 (most recent call first):
  <no Python frame>

Current thread's C stack trace (most recent call first):
  Binary file "/usr/bin/python3.14", at _Py_DumpStack+0x39 [0x5f1c09]
  <truncated rest of calls>

Extension modules: numpy._core._multiarray_umath, torch._C (total: 20)"""


def test_only_the_message_of_a_crash_remains() -> None:
    assert [line for line in without_stacks(FATAL.splitlines()) if line] == ["Fatal Python error: Aborted"]


def test_a_traceback_and_output_are_kept() -> None:
    lines = [
        "Traceback (most recent call last):",
        '  File "a.py", line 1, in <module>',
        "Thread 3 has ended",
        "...",
    ]
    assert without_stacks(lines) == lines

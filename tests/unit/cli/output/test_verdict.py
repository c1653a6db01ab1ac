"""The verdict on stdout."""

import os
import subprocess
import sys

CHILD = """
import os
from tipcflow.cli.output.verdict import stdout_console
try:
    stdout_console().print("pass")
except BrokenPipeError:
    os._exit(7)
"""


def test_a_closed_pipe_does_not_choose_the_exit_code() -> None:
    """As in `tipcflow run … | head`: the caller handles it, and exits with the code of the status."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run([sys.executable, "-c", CHILD], stdout=writer, check=False, timeout=60)
    finally:
        os.close(writer)
    assert done.returncode == 7

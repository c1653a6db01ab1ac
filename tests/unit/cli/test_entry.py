"""Ctrl-C while the command line is being imported."""

import os
import signal
import subprocess
import sys
from importlib.metadata import entry_points
from textwrap import dedent

import pytest

from tipcflow.domain import Status, exit_code

pytestmark = pytest.mark.process

INTERRUPTED = """
    import os, signal, sys

    class Interrupt:
        def find_spec(self, name, path=None, target=None):
            if name == {module!r}:
                os.kill(os.getpid(), signal.SIGINT)
            return None

    sys.meta_path.insert(0, Interrupt())
    sys.argv = ["tipcflow", "plan"]
    from tipcflow.entry import main
    main()
"""


def _run(module: str, *, ignored: bool = False) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", dedent(INTERRUPTED.format(module=module))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.SIG_DFL),
        env={**os.environ, "COLUMNS": "100"},
    )


def _default_signals() -> None:
    """Tests under nohup or a shell's background job inherit ignored signals."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.parametrize("module", ["tipcflow.cli.main", "pydantic.main", "tipcflow.domain.masking"])
def test_an_interrupted_import_is_cancelled_without_a_traceback(module: str) -> None:
    ended = _run(module)
    assert (ended.returncode, ended.stdout, ended.stderr) == (exit_code(Status.CANCELLED), "", "")


ENDED = """
    import os, signal, sys, threading, time
    import tipcflow.cli.main as cli
    from tipcflow.entry import main

    def interrupted():
        {during}

    cli.app.command("interrupted")(interrupted)
    sys.argv = ["tipcflow", "interrupted"]
    threading.Thread(target=lambda: {after}).start()
    main()
"""
# The interpreter, which has ended the main thread, waits for this one; signals that are lost end in exit code 99.
# A single signal may arrive between Python's last look for signals and the wait for this thread, without effect.
LATE = (
    "([time.sleep(0.02) for _ in iter(threading.main_thread().is_alive, False)], "
    "[(os.kill(os.getpid(), signal.{}), time.sleep(0.2)) for _ in range(100)], os._exit(99))"
)


@pytest.mark.parametrize(
    ("during", "after", "code"),
    [
        ("os.kill(os.getpid(), signal.SIGINT)", "None", exit_code(Status.CANCELLED)),
        ("print('verdict'); raise SystemExit(1)", LATE.format("SIGINT"), 1),
        ("print('verdict'); raise SystemExit(0)", LATE.format("SIGTERM"), 0),
        ("print('verdict')", LATE.format("SIGHUP"), 0),
    ],
    ids=["during the command", "Ctrl-C at exit", "SIGTERM at exit", "closed terminal at exit"],
)
def test_a_signal_during_or_after_the_command_sets_the_exit_code(during: str, after: str, code: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", dedent(ENDED.format(during=during, after=after))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=_default_signals,
    )
    assert (ended.returncode, ended.stderr) == (code, "")
    assert ended.stdout == ("verdict\n" if "verdict" in during else "")


def test_an_ignored_signal_stays_ignored() -> None:
    ended = _run("pydantic.main", ignored=True)
    assert ended.returncode == 2
    assert "PARAMS: is missing" in ended.stderr


def test_the_command_uses_this_entry_point() -> None:
    (command,) = entry_points(group="console_scripts", name="tipcflow")
    assert command.value == "tipcflow.entry:main"


# The command's body ends as `tipcflow run` does: signals are ignored, then the context ends, then the command.
BETWEEN = """
    import os, signal, sys, threading
    import tipcflow.cli.main as cli
    from tipcflow.cli.commands import signals
    from tipcflow.entry import main

    def finished():
        with signals.cancel_on_signals(threading.Event(), print, stay_ignored=signals.process_ends_with_command()):
            signals.ignore_signals()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(os.getpid(), number)
        print("verdict")
        raise SystemExit(1)

    cli.app.command("finished")(finished)
    sys.argv = ["tipcflow", "finished"]
    main()
"""


def test_a_signal_between_the_run_and_the_exit_keeps_the_exit_code() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", dedent(BETWEEN)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=_default_signals,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "verdict\n", "")

"""Faults of the training's own processes."""

from tests.support.faults.case import Case
from tests.support.faults.gate import FOR_EVER
from tests.support.faults.hasty import HANG

LAUNCHER = "paddle.distributed.launch"


def worker_crash(case: Case) -> None:
    """Its peers would wait for it for ever."""
    behind_gate(case, 'raise SystemExit("training went wrong: the data is broken")')


def worker_killed(case: Case) -> None:
    behind_gate(case, "os.kill(os.getpid(), signal.SIGKILL)")


def behind_gate(case: Case, mine: str, others: str = FOR_EVER) -> None:
    """Rank 3 does something, and the others wait for it."""
    gate = case.gate(rank=3, mine=mine, others=others)
    running = case.start()
    gate.wait(running)
    case.now()
    gate.open()
    case.end(running)


def launcher_killed(case: Case) -> None:
    gate = case.gate()
    running = case.start()
    gate.wait(running)
    case.now()
    # The oldest is the launcher; the shell that runs it has the same words in its command line.
    launchers = [one for one in case.nodes.processes("b") if f"-m {LAUNCHER}" in one.cmdline]
    launcher = next(one for one in launchers if not one.cmdline.startswith(("/bin/bash", "bash", "sh ")))
    case.nodes.exec("b", ["kill", "-9", str(launcher.pid)])
    case.end(running)


def rank_hangs(case: Case) -> None:
    """The others go on to where they need it."""
    case.env[HANG] = "8"
    behind_gate(case, FOR_EVER, others=f"len([0 for _ in range(9) if not print('.', flush=True)]); {FOR_EVER}")


def deadline_passed(case: Case) -> None:
    """The run's budget is used up in the middle of a training that goes on printing."""
    case.desk.configure_suite(budget_minutes=0.15)
    gate = case.gate()
    running = case.start()
    gate.wait(running)
    case.now()
    case.end(running)

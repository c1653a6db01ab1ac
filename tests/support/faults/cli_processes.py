"""Faults of the training's own processes."""

import json

from tests.support.faults.case import Case
from tests.support.faults.gate import FOR_EVER

LAUNCHER = "paddle.distributed.launch"


def worker_crash(case: Case) -> None:
    """Its peers would wait for it for ever."""
    behind_gate(case, 'raise SystemExit("training went wrong: the data is broken")')


def worker_killed(case: Case) -> None:
    behind_gate(case, "os.kill(os.getpid(), signal.SIGKILL)")


def worker_killed_once(case: Case) -> None:
    """As an impatient neighbor does; the second attempt is left alone."""
    case.site.configure_policy(retries={})
    mark = str(case.folder / "killed")
    kill = f'open({mark!r}, "w").close(); os.kill(os.getpid(), signal.SIGKILL)'
    behind_gate(case, f"os.path.exists({mark!r}) or exec({kill!r})", others="pass")
    assert case.run is not None
    with case.site.store() as store:
        tried = [one for one in store.attempts.of(case.run.id) if one.step.endswith("train")]
    assert [(one.attempt, set(one.nodes)) for one in tried] == [(1, {"a", "b"}), (2, {"a", "b"})]


def behind_gate(case: Case, mine: str, others: str = FOR_EVER, later: str = "pass") -> None:
    """Rank 3 does something, and the others wait for it."""
    gate = case.gate(rank=3, mine=mine, others=others, later=later)
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
    """The others continue to where they need it, one iteration further."""
    case.site.configure_policy(hang_s=6)
    behind_gate(case, FOR_EVER, others="pass", later=FOR_EVER)


def run_cancelled(case: Case) -> None:
    """In the middle of a training."""
    gate = case.gate()
    running = case.start()
    gate.wait(running)
    case.cancel(running)
    case.end(running)


def deadline_passed(case: Case) -> None:
    """The run's budget is used up in the middle of a training that continues printing."""
    case.site.configure_suite(budget_minutes=case.short_budget)
    gate = case.gate()
    running = case.start()
    gate.wait(running)
    case.now()
    case.end(running)
    assert case.run is not None
    folder = case.site.home / "runs" / case.run.id
    kept = [json.loads(path.read_text()) for path in folder.glob("*/*/evidence.json")]
    assert {(one["node"], one["why"]) for one in kept} >= {("a", "deadline")}, kept

"""What a case works with: two real nodes, a user, a suite that keeps a ledger of every printed loss."""

import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.losses import EPOCHS, ITERATIONS, RANKS, Ledger
from tests.support.certify import Site

from devcluster.local_nodes.nodes import LocalNodes
from devcluster.local_nodes.processes import Process

LOSS_PRINTED = "            flush=True,\n        )\n"
LOOP = "    for iteration in range(1, 6):\n"
STEP_S = 0.15
# Shorter than shipped, so that a case takes seconds: what is waited for is the same.
WAITS: dict[str, float] = {"node_lease_s": 10, "reconnect_s": 10, "lease_ttl_s": 6, "silence_s": 4}
HANG_S = 6
LAUNCHER = "-m paddle.distributed.launch"


@dataclass
class World:
    """One case.

    Attributes:
        target: the node that is hit; rank: one of its ranks.
        iteration: the training iteration (1 to 10, counted over epochs) of a fault inside the training.
        away: nodes that nothing can reach any more; checks leave them out.
        refused: nodes that no controller can log in to any more; their leases are left out.
        notes: what the injection itself did not manage.
        controller: the process of `tipcflow run`; None in Airflow.
        airflow: the case's side of Airflow; None for `tipcflow run`.
        waits: of the policy.
        struck_at: when the fault was made, seconds since the epoch; 0 without an act.
        differences: what a fault itself found wrong in the database.
        secret: text of a file that may not leave the node; '' when no fault made one.
    """

    folder: Path
    site: Site
    rng: random.Random
    target: str
    rank: int
    iteration: int
    away: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    controller: Any = None
    airflow: Any = None
    struck_at: float = 0.0
    waits: dict[str, float] = field(default_factory=lambda: dict(WAITS))
    differences: list[str] = field(default_factory=list)
    secret: str = ""
    undo: list[Callable[[], None]] = field(default_factory=list)
    # Further runs of the case; what they hold is not left behind.
    others: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def nodes(self) -> LocalNodes:
        """The case's nodes."""
        return self.site.nodes

    @property
    def workspace(self) -> Path:
        """The hit node's workspace."""
        return Path(self.nodes.cluster.node(self.target).workspace)

    @property
    def ledger_folder(self) -> Path:
        """Outside of every workspace: faults do not reach it."""
        return self.folder / "ledger"

    def set_up(self) -> None:
        """Make the suite slow enough to be hit, and let it keep the ledger."""
        self.ledger_folder.mkdir(parents=True, exist_ok=True)
        keep = (
            "        run, *_, attempt = os.environ['TIPCFLOW_JOB'].split('/')\n"
            f"        with open(f'{self.ledger_folder}/{{run}}.{{attempt}}.{{rank}}', 'a') as ledger:\n"
            "            ledger.write(f'{loss:.5f}\\n')\n"
        )
        self.in_train(LOSS_PRINTED, f"{LOSS_PRINTED}{keep}")
        self.site.edit_params("norm_train:train.py", f"norm_train:train.py --step-time {STEP_S}")
        self.site.configure_policy(waits=self.waits, hang_s=HANG_S)

    def in_train(self, old: str, new: str) -> None:
        """Replace text of the training script that must be there."""
        path = self.site.suite / "train.py"
        text = path.read_text()
        assert old in text, f"train.py does not hold {old!r}"
        path.write_text(text.replace(old, new, 1))

    def at_iteration(self, code: str, *, ranks: Iterable[int] | None = None, once: bool = False) -> None:
        """Run one line of Python in the chosen rank (or ranks) just before the chosen iteration.

        Args:
            once: only in the first attempt.
        """
        epoch, iteration = divmod(self.iteration - 1, ITERATIONS)
        who = sorted({self.rank} if ranks is None else set(ranks))
        when = f"epoch == {epoch + 1} and iteration == {iteration + 1} and rank in {who}"
        if once:
            when += " and os.environ['TIPCFLOW_JOB'].endswith('/1')"
        self.in_train(LOOP, f"{LOOP}        if {when}:\n            {code}\n")

    def ledger(self) -> Ledger:
        """What the first run has printed so far; another run of the same suite keeps files of its own."""
        found: Ledger = {}
        files = sorted(self.ledger_folder.glob("*.*.*"))
        for path in files:
            run, attempt, rank = path.name.split(".")
            if run == files[0].name.split(".")[0]:
                found[int(attempt), int(rank)] = [float(line) for line in path.read_text().split()]
        return found

    def reached(self) -> bool:
        """Whether the chosen rank has printed as many iterations as the moment requires."""
        printed = max((len(losses) for (_, rank), losses in self.ledger().items() if rank == self.rank), default=0)
        return printed >= self.iteration

    def complete(self) -> bool:
        """Whether the last attempt printed every declared iteration on every rank, all losses finite."""
        ledger = self.ledger()
        last = max((attempt for attempt, _ in ledger), default=0)
        wanted = EPOCHS * ITERATIONS
        return all(
            len(losses := ledger.get((last, rank), [])) == wanted
            and all(abs(one) < float("inf") for one in losses)
            for rank in range(RANKS)
        )

    def find(self, *words: str, without: tuple[str, ...] = ()) -> list[Process]:
        """Processes of the hit node whose command line has all of these words."""
        return [
            one
            for one in self.nodes.processes(self.target)
            if all(word in one.cmdline for word in words) and not any(word in one.cmdline for word in without)
        ]

    def signal(self, number: signal.Signals, *words: str, without: tuple[str, ...] = ()) -> None:
        """Send a signal to the first such process; a note when there is none."""
        found = self.find(*words, without=without)
        if not found:
            self.notes.append(f"no process {' '.join(words)!r} on node {self.target}")
            return
        self.nodes.exec(self.target, ["kill", f"-{int(number)}", str(found[0].pid)])

    def execute(self, *command: str) -> None:
        """Run a command on the hit node; a note when it fails."""
        done = self.nodes.exec(self.target, list(command))
        if done.returncode:
            self.notes.append(f"{' '.join(command)}: {done.stderr.strip()[:120]}")

    def run_folders(self) -> list[Path]:
        """Folders of runs on the hit node."""
        return sorted(self.workspace.glob("runs/*"))

    def wait(self, when: Callable[[], bool], seconds: float, over: Callable[[], bool]) -> bool:
        """Wait for a condition; False when the run is over or the time is up before."""
        deadline = time.monotonic() + seconds
        while not when():
            if over() or time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True


TRACEBACK = re.compile(r"^Traceback \(most recent call last\):", re.MULTILINE)

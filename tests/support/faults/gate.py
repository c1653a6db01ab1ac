"""A gate in the toy's training: all ranks wait at the third iteration until a test lets them continue, or not."""

from pathlib import Path
from typing import Protocol

from tests.support.certify import Site, wait_for

LOOP = "    for iteration in range(1, 6):\n"
FOR_EVER = "time.sleep(3600)"
CODE = """
        if epoch == 1 and iteration == 3:
            open(f"{at}{{rank}}.{{os.uname().nodename}}.{{os.getpid()}}", "w").close()
            while not os.path.exists({gate!r}):
                time.sleep(0.02)
            if rank == {rank}:
                {mine}
            else:
                {others}
        if epoch == 1 and iteration == 4 and rank != {rank}:
            {later}
"""


class Going(Protocol):
    """A running run, of the CLI or in Airflow."""

    @property
    def over(self) -> bool:
        """Whether it has ended."""

    @property
    def output(self) -> str:
        """The lines printed so far."""


class Gate:
    """The gate of one site's training.

    Args:
        rank: who does `mine` (one line of Python) behind the gate; all others do `others`, and, one iteration
            further, `later`.
    """

    def __init__(
        self,
        site: Site,
        folder: Path,
        *,
        rank: int = 3,
        mine: str = "pass",
        others: str = "pass",
        later: str = "pass",
    ) -> None:
        self._open = folder / "gate"
        self._at = folder / "gate.rank"
        code = CODE.format(at=self._at, gate=str(self._open), rank=rank, mine=mine, others=others, later=later)
        train = site.suite / "train.py"
        text = train.read_text()
        assert LOOP in text
        train.write_text(text.replace(LOOP, LOOP + code.lstrip("\n")))

    def wait(self, running: Going, *, ranks: int = 4, seconds: float = 120) -> None:
        """Until all ranks of a run are there."""
        what = f"{ranks} ranks at the gate"
        wait_for(lambda: self.waiting() >= ranks or running.over, what=what, seconds=seconds)
        assert self.waiting() >= ranks, f"the run ended before its ranks were at the gate: {running.output}"

    def waiting(self) -> int:
        """How many ranks have come."""
        return len(list(self._at.parent.glob(f"{self._at.name}*")))

    def open(self) -> None:
        """Let them continue."""
        self._open.touch()

    def shut(self) -> None:
        """For another training behind the same gate."""
        self._open.unlink(missing_ok=True)
        for path in self._at.parent.glob(f"{self._at.name}*"):
            path.unlink()

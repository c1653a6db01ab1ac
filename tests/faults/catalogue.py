"""All faults that the injector draws from, and the draw."""

import random
from dataclasses import dataclass

from tests.faults import controller, files, model, nodes, packets, processes
from tests.faults.airflow import faults as airflow
from tests.faults.fault import Door, Fault

FAULTS: tuple[Fault, ...] = (
    *model.FAULTS,
    *processes.FAULTS,
    *nodes.FAULTS,
    *packets.FAULTS,
    *files.FAULTS,
    *controller.FAULTS,
    *airflow.FAULTS,
)
# Of a run's seconds: where a fault outside the training may fall.
RUN_S: dict[Door, float] = {"cli": 8.0, "airflow": 20.0}
DOUBLE_SHARE = 0.12
# Of the cases outside the training: the share that comes before there is a run, and its latest moment, seconds.
BEFORE_SHARE, BEFORE_S = 0.1, 1.5
# Ends the name of a case with real Paddle.
PADDLE = ", Paddle"


@dataclass(frozen=True)
class Draw:
    """One case: what is done, when and where. The same seed and number give the same case.

    Attributes:
        delay_s: for faults anywhere in the run, seconds after the first sign of the run; with `before`, after the
            start of the process.
        before: whether the moment comes before there is a run.
        away_s: seconds until a fault heals.
        paddle: whether real Paddle trains.
    """

    number: int
    seed: int
    faults: tuple[Fault, ...]
    target: str
    rank: int
    iteration: int
    delay_s: float
    away_s: float
    paddle: bool = False
    before: bool = False

    @property
    def name(self) -> str:
        """What is done, for the table."""
        names = " + ".join(fault.name for fault in self.faults)
        return f"{names}{PADDLE}" if self.paddle else names


def draw(number: int, seed: int, door: Door, *, only: str = "", paddle: float = 0.0) -> Draw:
    """The case of a number.

    Every fault comes up equally often over many cases: the catalogue is shuffled again for each round.

    Args:
        only: parts of names, separated by `|`.
        paddle: the share of cases in which real Paddle trains.
    """
    real = random.Random(f"{seed}/{number}/paddle").random() < paddle
    chosen = [fault for fault in FAULTS if any(part in fault.name for part in only.split("|"))]
    known = [fault for fault in chosen if door in fault.doors and (fault.paddle or not real)]
    round_, place = divmod(number, len(known))
    shuffled = known.copy()
    random.Random(f"{seed}/{round_}").shuffle(shuffled)
    first, rng = shuffled[place], random.Random(f"{seed}/{number}")
    faults = [first]
    if not only and not first.alone and rng.random() < DOUBLE_SHARE:
        others = [fault for fault in known if not fault.alone and fault is not first]
        faults.append(rng.choice(others))
    target, rank = rng.choice((("a", 0), ("a", 1), ("b", 2), ("b", 3)))
    low, high = max((fault.away_s for fault in faults), default=(0.0, 0.0))
    delay_s, away_s = rng.uniform(0.3, RUN_S[door]), rng.uniform(low, high)
    before = door == "cli" and rng.random() < BEFORE_SHARE
    return Draw(
        number=number,
        seed=seed,
        faults=tuple(faults),
        target=target,
        rank=rank,
        iteration=rng.randint(2, 9),
        delay_s=rng.uniform(0.0, BEFORE_S) if before else delay_s,
        away_s=away_s,
        paddle=real,
        before=before,
    )

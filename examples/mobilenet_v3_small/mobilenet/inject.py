"""Faults on demand, to test whatever watches a training: `--inject=KIND@STEP` or `KIND@STEP@RANK`."""

import time
from dataclasses import dataclass
from typing import Literal, cast

from mobilenet.arguments import refuse

EXIT_CODE = 17
Kind = Literal["nan", "exit", "hang"]


@dataclass(frozen=True)
class Fault:
    """What goes wrong: `kind` at `step` (counted from 0 over the whole training), on `rank` or on all (None)."""

    kind: Kind
    step: int
    rank: int | None = None

    def strikes(self, kind: Kind, step: int, rank: int) -> bool:
        """Whether this fault is due. A nan stays from its step on."""
        due = step >= self.step if kind == "nan" else step == self.step
        return self.kind == kind and due and self.rank in (None, rank)


def parse_fault(text: str) -> Fault | None:
    """`nan@3`, `exit@3@1` (rank 1 only), `hang@0`; None for '' and null."""
    if text in ("", "null"):
        return None
    kind, *numbers = text.split("@")
    if (
        kind not in ("nan", "exit", "hang")
        or len(numbers) not in (1, 2)
        or not all(n.isdecimal() for n in numbers)
    ):
        refuse(f"--inject={text}: expected nan@STEP, exit@STEP or hang@STEP, with @RANK for one rank only")
    return Fault(cast("Kind", kind), *map(int, numbers))


def before_step(fault: Fault | None, step: int, rank: int) -> None:
    """Ends or stops the process when that is due."""
    if fault is None:
        return
    if fault.strikes("exit", step, rank):
        print(f"injected: rank {rank} exits at step {step}", flush=True)
        raise SystemExit(EXIT_CODE)
    if fault.strikes("hang", step, rank):
        print(f"injected: rank {rank} hangs from step {step}", flush=True)
        while True:
            time.sleep(3600)


def loss_factor(fault: Fault | None, step: int, rank: int) -> float:
    """What the loss is multiplied with: nan when that is due."""
    return float("nan") if fault is not None and fault.strikes("nan", step, rank) else 1.0

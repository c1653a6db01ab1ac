"""A hundred thousand broken params files: each is planned or refused, whatever dialect reads it."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tipcflow.domain import Compat, ConfigError, StepKind
from tipcflow.params import known_dialects, load_dialect
from tipcflow.plan import MODES, build_plan, plan_commands

INPUTS = Path(__file__).parents[2] / "golden" / "plan" / "inputs"
PIECES = [
    "",
    " ",
    "null",
    ":",
    "|",
    ";",
    ",",
    "=",
    "-1",
    "0",
    "0,1",
    "a,b;0",
    "*",
    "$X",
    "\r",
    "'",
    '"',
    "{x}",
    "é",
]


def broken(count: int) -> Iterator[tuple[random.Random, str]]:
    texts = [path.read_text() for path in sorted(INPUTS.glob("*.txt"))]
    dice = random.Random(20_261_121)
    for _ in range(count):
        lines = dice.choice(texts).split("\n")
        for _ in range(dice.randint(1, 5)):
            place = dice.randrange(len(lines) or 1)
            line = "".join(lines[place : place + 1])
            cut = dice.randint(0, len(line))
            piece = "".join(dice.choices(PIECES, k=dice.randint(0, 3)))
            lines[place : place + 1] = dice.choice(
                [[], [line, line], [line[:cut] + piece + line[cut:]], [line[:cut]], [piece], [piece, line]]
            )
        yield dice, "\n".join(lines)


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_a_hundred_thousand_broken_files() -> None:
    planned = refused = 0
    for dice, text in broken(100_000):
        name, mode, compat = dice.choice(known_dialects()), dice.choice(MODES), dice.choice(list(Compat))
        for command in plan_commands(text, file="f", dialect=load_dialect(name), mode=mode):
            assert command.text
        try:
            plan = build_plan(
                text,
                file="f",
                suite="s",
                chain="c",
                dialects=["models/template", "models/mobilenetv3_prod"],
                mode=mode,
                compat=compat,
            )
        except ConfigError as error:
            refused += 1
            assert error.found  # noqa: PT017
        else:
            planned += 1
            assert any(step.kind is not StepKind.PREPARE for step in plan.steps)
    assert planned > 1000
    assert refused > 1000

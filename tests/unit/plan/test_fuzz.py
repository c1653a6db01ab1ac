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


# Files of the suites' other scripts -> the dialect that a suite lists, and their mode.
FAMILIES = {
    "onnx": ("PaddleClas", "paddle2onnx_infer"),
    "onnx_det": ("PaddleDetection", "paddle2onnx_infer"),
    "pipeline": ("PaddleDetection", "pipeline_infer"),
    "blocks": ("PaddleClas", "lite_train_lite_infer"),
    "benchmark": ("PaddleOCR", "benchmark_train"),
}
TRAINING = ("models/template", "models/mobilenetv3_prod")


def broken(count: int) -> Iterator[tuple[random.Random, str, tuple[str, ...], str]]:
    """Dice, broken text, the suite's dialects, and the file's mode ('' for any of training and inference)."""
    texts = [(path.read_text(), TRAINING, "") for path in sorted(INPUTS.glob("*.txt"))]
    for name, (dialect, mode) in FAMILIES.items():
        texts.append(((INPUTS.parent / "families" / f"{name}.txt").read_text(), (dialect,), mode))
    dice = random.Random(20_261_121)
    for _ in range(count):
        text, dialects, mode = dice.choice(texts)
        lines = text.split("\n")
        for _ in range(dice.randint(1, 5)):
            place = dice.randrange(len(lines) or 1)
            line = "".join(lines[place : place + 1])
            cut = dice.randint(0, len(line))
            piece = "".join(dice.choices(PIECES, k=dice.randint(0, 3)))
            lines[place : place + 1] = dice.choice(
                [[], [line, line], [line[:cut] + piece + line[cut:]], [line[:cut]], [piece], [piece, line]]
            )
        yield dice, "\n".join(lines), dialects, mode


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_a_hundred_thousand_broken_files_are_planned_or_refused() -> None:
    planned = refused = 0
    for dice, text, dialects, own in broken(100_000):
        name, compat = dice.choice(known_dialects()), dice.choice(list(Compat))
        mode = own or dice.choice(MODES)
        for command in plan_commands(text, file="f", dialect=load_dialect(name), mode=mode):
            assert command.text
        try:
            plan = build_plan(
                text,
                file="f",
                suite="s",
                chain="c",
                dialects=dialects,
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

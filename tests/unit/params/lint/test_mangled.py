"""However a file is mangled: lint returns, and never reports a file clean that cannot be planned."""

import random
import sys
from collections import Counter
from collections.abc import Iterator

import pytest

from tipcflow.domain import Compat, ConfigError
from tipcflow.params import known_dialects, load_dialect
from tipcflow.params.kinds import WHAT, recognise
from tipcflow.params.lint.guess import guess_dialect
from tipcflow.params.lint.rules import all_rules, lint_text
from tipcflow.params.lint.subject import Severity
from tipcflow.plan import build_plan

from .conftest import clean_norm, clean_short

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
    "10",
    "0,1",
    "a,b;0",
    "*",
    "$X",
    "\r",
    "'",
    '"',
    "Fasle",
    "é",
    " #",
    "~/",
    "$(x)",
    "`",
    "> f",
    "(",
    "\\",
    "{a,b}",
    "\0",
    "\x1b",
    "\u200b",
    "\u202e",
    "\ufeff",
    "١",
    "007",
    "../",
    "-rf",
    "|a" * 300,
]
# Texts of fewer characters come from the 32-line file.
SHORT = 1200
TRAINING = [name for name in known_dialects() if not load_dialect(name).family]


def mangled(count: int, seed: int) -> Iterator[tuple[random.Random, str]]:
    texts = [clean_norm(), clean_short()]
    dice = random.Random(seed)
    for _ in range(count):
        lines = dice.choice(texts).split("\n")
        for _ in range(dice.randint(0, 4)):
            place = dice.randrange(len(lines) or 1)
            line = "".join(lines[place : place + 1])
            cut = dice.randint(0, len(line))
            piece = "".join(dice.choices(PIECES, k=dice.randint(0, 3)))
            lines[place : place + 1] = dice.choice(
                [[], [line, line], [line[:cut] + piece + line[cut:]], [line[:cut]], [piece], [piece, line]]
            )
        yield dice, "\n".join(lines)


def judge(text: str, name: str) -> str:
    """`clean`, `found`, or `refused` (found, and the planner refuses it)."""
    dialect = load_dialect(name)
    findings = lint_text(text, file="f", dialect=dialect)
    known = {rule.id for rule in all_rules()}
    last = len(text.split("\n"))
    assert all(each.rule in known and 0 <= each.line <= last and each.message and each.fix for each in findings)
    errors = [each for each in findings if each.severity is not Severity.NOTE]
    try:
        build_plan(
            text,
            file="f",
            suite="s",
            chain="c",
            dialects=[name],
            mode="lite_train_lite_infer",
            compat=Compat.SPEC,
        )
    except ConfigError as error:
        refused = error
    else:
        return "found" if errors else "clean"
    assert errors, f"{name}: lint has nothing against a file that cannot be planned: {refused}\n{text}"
    return "refused"


def run(count: int, seed: int) -> Counter[str]:
    result: Counter[str] = Counter()
    for dice, text in mangled(count, seed):
        assert recognise(text, "f.txt").kind in WHAT
        assert guess_dialect(text, "f.txt")[0] in TRAINING
        own = "models/template" if len(text) > SHORT else "models/mobilenetv3_prod"
        result[judge(text, own if dice.random() < 0.8 else dice.choice(TRAINING))] += 1
    return result


@pytest.mark.slow
def test_lint_finds_problems_in_every_unplannable_file() -> None:
    result = run(150, 1)
    assert result["refused"] > 50
    assert result["clean"] > 20


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_ten_thousand_mangled_files_have_findings(capsys: pytest.CaptureFixture[str]) -> None:
    result = run(10_000, 20_261_121)
    with capsys.disabled():
        sys.stdout.write("\n" + "".join(f"{word:<10}{count:>8}\n" for word, count in sorted(result.items())))
    assert min(result.values()) > 100

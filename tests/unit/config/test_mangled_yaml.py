"""However a configuration file is mangled: it loads, or the error is one line with the file's name, and a hint."""

import random
from collections import Counter
from pathlib import Path

import pytest
from pydantic import BaseModel

from tipcflow.config.loader import parse_yaml
from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.config.suite import Suite
from tipcflow.domain import Cluster, ConfigError

CONFIGS = Path(__file__).parents[3] / "configs"
FILES: dict[str, type[BaseModel]] = {
    "suites/mobilenet_v3_small.yaml": Suite,
    "clusters/example.yaml": Cluster,
    "policies/pr.yaml": Policy,
    "references/mobilenet_v3_small.yaml": References,
}
PIECES = [
    "yes",
    "on",
    "010",
    "1:30",
    "~",
    "null",
    "&a ",
    "*a",
    "<<: ",
    "!!int ",
    "!x ",
    "? ",
    "[",
    "]",
    "{",
    "}",
    "- ",
]
PIECES += [
    "'",
    '"',
    "\0",
    "\x1b",
    "\u200b",
    "\ufeff",
    "\t",
    "|",
    ">",
    "%",
    "@",
    "`",
    "#",
    "2026-13-45",
    "9" * 5000,
]
PIECES += [
    "\\",
    '"\\U',
    "99999999999999999999",
    "-1",
    ".nan",
    ".inf",
    "=",
    ":",
    ": ",
    "---\n",
    "...\n",
    "\r",
    "[" * 500,
]


def mangled(text: str, dice: random.Random) -> str:
    for _ in range(dice.randint(1, 4)):
        lines = text.split("\n")
        place = dice.randrange(len(lines))
        line = lines[place]
        cut = dice.randint(0, len(line))
        piece = "".join(dice.choices(PIECES, k=dice.randint(1, 2)))
        colon = line.find(":") + 1
        changed = [[line[:cut] + piece + line[cut:]], [line[:colon] + " " + piece], [line, line], [], [line[:cut]]]
        lines[place : place + 1] = dice.choice(changed)
        text = "\n".join(lines)
    return text


def judge(text: str, model: type[BaseModel]) -> str:
    try:
        parse_yaml(text, model, file="lab.yaml")
    except ConfigError as error:
        result = str(error)
        assert result.startswith("lab.yaml:"), result
        message, _, hint = result.partition("\n")
        assert message, result
        assert not hint or hint.startswith("  hint: did you mean "), result
        assert "\n" not in hint, result
        assert "Traceback" not in result
        assert len(result) < 1500
        return "refused"
    return "loaded"


def run(count: int, seed: int) -> Counter[str]:
    dice = random.Random(seed)
    texts = {name: (CONFIGS / name).read_text() for name in FILES}
    found: Counter[str] = Counter()
    for _ in range(count):
        name = dice.choice(list(FILES))
        found[judge(mangled(texts[name], dice), FILES[name])] += 1
    return found


@pytest.mark.slow
def test_mangled_files_load_or_are_refused_with_one_message() -> None:
    found = run(400, 3)
    assert min(found["loaded"], found["refused"]) > 20


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_five_thousand_mangled_files_are_loaded_or_refused() -> None:
    found = run(5000, 20_261_122)
    assert min(found["loaded"], found["refused"]) > 200

"""Shell completion through typer's protocol, as bash, zsh and fish call it."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.support.stories import T0, a_run, record_run

from tipcflow.store import Store

pytestmark = pytest.mark.process
RUN = "20261121t093005-mobilenet-0000"
# Words before the cursor -> the first choices for the last of them.
BASH = {
    "tipcflow sho": ["show"],
    "tipcflow certificate ": ["show", "verify"],
    "tipcflow show ": ["latest", RUN],
    "tipcflow show 2026": [RUN],
    "tipcflow history cl": ["clas/ResNet50/train_infer_python"],
    "tipcflow history Res": ["ResNet50"],
    "tipcflow gate la": ["latest"],
    "tipcflow nodes --cluster exa": ["example"],
    "tipcflow suites PaddleC": ["PaddleClas"],
    "tipcflow run x --suite PaddleO": ["PaddleOCR"],
    "tipcflow judge --policy ": ["pr", "weekly"],
    "tipcflow plan x --mode benchmark": ["benchmark_train"],
    "tipcflow runs --status regr": ["regression"],
    "tipcflow trigger mob": ["mobilenet_v3_small/mobilenet_v3_small/train_fleet_infer_python"],
}
# One process for all cases: each takes what a keystroke takes, and the imports are the most of it.
ASK = """
import contextlib, io, json, os, sys
from tipcflow.cli.main import main
answers = []
for variables in json.load(sys.stdin):
    os.environ.update(variables)
    sys.argv = ["tipcflow"]
    with contextlib.redirect_stdout(io.StringIO()) as out:
        with contextlib.suppress(SystemExit):
            main()
    answers.append(out.getvalue().split("\\n")[:-1])
print(json.dumps(answers))
"""


@pytest.fixture
def stored(database: Path) -> None:
    with Store.open() as store:
        record_run(store, a_run(RUN, chain="clas/ResNet50/train_infer_python", created_at=T0))


def requested(words: str, shell: str = "bash") -> dict[str, str]:
    """The variables with which a shell requests completions of the last word."""
    by_shell = {
        "bash": {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": words},
        "fish": {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }
    return {"_TIPCFLOW_COMPLETE": f"complete_{shell}", **by_shell[shell]}


def answers(questions: Sequence[Mapping[str, str]]) -> list[list[str]]:
    ended = subprocess.run(
        [sys.executable, "-c", ASK],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
        timeout=200,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return list(json.loads(ended.stdout))


def test_bash_completes_commands_and_options(stored: None) -> None:
    given = answers([requested(words) for words in BASH])
    first = {words: choices[: len(BASH[words])] for words, choices in zip(BASH, given, strict=True)}
    assert first == BASH
    for words, choices in zip(BASH, given, strict=True):
        assert all(choice.startswith(words.split(" ")[-1]) for choice in choices)


def test_zsh_and_fish_complete_runs_with_status_and_chain(stored: None) -> None:
    fish, zsh = answers([requested("tipcflow show 2026", shell) for shell in ("fish", "zsh")])
    assert fish == [f"{RUN}\tpass clas/ResNet50/train_infer_python"]
    assert f'"{RUN}":"pass clas/ResNet50/train_infer_python"' in zsh[0]


def test_nothing_is_created_and_errors_are_silent(home: Path) -> None:
    question = requested("tipcflow show ")
    urls = ("nonsense", "postgresql://user@127.0.0.1:1/none")
    given = answers([question, *(question | {"TIPCFLOW_DATABASE_URL": url} for url in urls)])
    assert given == [[""]] * 3
    assert not home.exists()


def test_every_shell_has_a_completion_script() -> None:
    shells = ("bash", "zsh", "fish")
    given = answers([{"_TIPCFLOW_COMPLETE": f"source_{shell}"} for shell in shells])
    for shell, lines in zip(shells, given, strict=True):
        assert f"_TIPCFLOW_COMPLETE=complete_{shell}" in "\n".join(lines)

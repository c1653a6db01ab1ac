"""`tipcflow select` on a git repository of the toy suite."""

import json
import shutil
from pathlib import Path

import pytest
from tests.support.certify import ROOT
from tests.support.github.world import CHAIN, commit, make_configs, make_repository
from typer.testing import CliRunner

from tipcflow.cli.main import app
from tipcflow.domain import ConfigError


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "suite"
    shutil.copytree(ROOT / "tests" / "support" / "toy_suite", folder)
    make_repository(folder)
    rules = {"selection": {"sentinels": ["toy/toy/train_infer_python"]}}
    make_configs(tmp_path / "configs", folder, ("train_infer_python", "second"), **rules)
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(tmp_path / "configs"))
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path / "home"))
    return folder


def test_chains_of_a_commit_are_listed_with_reasons(suite: Path) -> None:
    head = commit(suite, {"train.py": "print('new')\n"})
    words = ["select", "r", "--head", head, "--base", "HEAD~1", "--json"]
    found = json.loads(CliRunner().invoke(app, words).stdout)
    assert found["commit"] == head
    assert found["changed"] == ["train.py"]
    assert [(one["chain"], one["because"]) for one in found["selected"]] == [(CHAIN, "needed")]
    assert set(found["others"]) == {"toy/toy/second"}


def test_an_unknown_file_runs_the_sentinels(suite: Path) -> None:
    shown = CliRunner().invoke(app, ["select", "r", "--path", "setup.cfg", "--explain"]).stdout
    assert "sentinel" in shown
    assert "NOT SELECTED" in shown
    assert "no chain is known to use setup.cfg" in shown
    assert shown.splitlines()[-1] == "1 changed file: 1 of 2 chains"


def test_label_that_skips_runs_selects_no_chain(suite: Path) -> None:
    words = ["select", "r", "--path", "setup.cfg", "--label", "tipc:skip"]
    shown = CliRunner().invoke(app, [*words, "--explain"]).stdout
    assert shown.count("label tipc:skip") == 1
    assert shown.splitlines()[-1] == "1 changed file: 0 of 2 chains"
    assert json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)["selected"] == []


@pytest.mark.parametrize(
    "words", [["r"], ["r", "--base", "main", "--path", "a"], ["nowhere", "--path", "a"], ["r", "--base", "v99"]]
)
def test_wrong_arguments_are_config_errors(suite: Path, words: list[str]) -> None:
    assert isinstance(CliRunner().invoke(app, ["select", *words]).exception, ConfigError)

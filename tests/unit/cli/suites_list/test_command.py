"""`tipcflow suites` and the suite files that are shipped."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tipcflow.cli.main import app
from tipcflow.config.suite import load_suite
from tipcflow.params import known_dialects
from tipcflow.parse import line_format

CONFIGS = Path(__file__).parents[4] / "configs"
SHIPPED = sorted(file.stem for file in (CONFIGS / "suites").glob("*.yaml"))


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_suite_file_names_existing_dialects_and_formats(name: str) -> None:
    suite = load_suite(name, CONFIGS)
    assert suite.name == name
    assert set(suite.dialects) <= set(known_dialects())
    line_format(suite.log_format)  # raises for an unknown format
    if suite.git:
        assert suite.data_recipe or any(one.result == "not_run" for one in suite.verified)


def test_the_list_has_every_suite_and_its_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(CONFIGS))
    done = CliRunner().invoke(app, ["suites", "--json"])
    assert done.exit_code == 0, done.output
    listed = {one["name"]: one for one in json.loads(done.stdout)}
    assert sorted(listed) == SHIPPED
    results = [one["result"] for one in listed["PaddleRec"]["verified"]]
    assert {"pass", "failed"} <= set(results)
    shown = CliRunner().invoke(app, ["suites", "PaddleRec"])
    assert "failed: wide_deep train_infer_python, lite_train_lite_infer, export (commit 656326ad" in shown.stdout


def test_a_wrong_suite_file_is_one_error_and_the_others_are_listed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "bad.yaml").write_text("name: bad\nfolder: /x\ndialects: [m]\nenvironment: mine\n")
    (tmp_path / "suites" / "good.yaml").write_text("name: good\nfolder: /x\ndialects: [models/template]\n")
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(tmp_path))
    done = CliRunner().invoke(app, ["suites"])
    assert done.exit_code == 2
    assert "good" in done.stdout
    assert "bad.yaml:4: environment" in done.stderr

"""`tipcflow plan --expects`: what a run must prove, as a table and as JSON."""

import json
from pathlib import Path

import pytest
from tests.support.stories import T0, a_run
from typer.testing import CliRunner

from tipcflow.cli.main import app
from tipcflow.domain import EvidenceKey, Status
from tipcflow.domain.run_documents import FoundDocument
from tipcflow.store import Store

TOY = Path(__file__).parents[3] / "support/toy_suite"
PARAMS = "test_tipc/configs/toy/train_infer_python.txt"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "configs" / "suites"
    folder.mkdir(parents=True)
    (folder / "toy.yaml").write_text(
        f"name: toy\nfolder: {TOY}\nprints: {{evaluation: false}}\n"
        "dialects: [models/mobilenetv3_prod, models/template]\n"
    )
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(tmp_path / "configs"))
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TIPCFLOW_DATABASE_URL", raising=False)
    return tmp_path


def test_expected_evidence_is_printed_as_json_and_table(config: Path) -> None:
    done = CliRunner().invoke(app, ["plan", PARAMS, "--suite", "toy", "--expects", "--json"])
    assert done.exit_code == 0, done.output
    pieces = json.loads(done.stdout)
    kinds = [piece["kind"] for piece in pieces]
    assert {"train.iterations", "train.loss", "train.length", "files", "infer.report"} <= set(kinds)
    assert "eval.metric" not in kinds, "the suite file says that evaluations print nothing"
    length = next(piece for piece in pieces if piece["kind"] == "train.length")
    assert length["epochs"] == 2
    assert {piece["rank"] for piece in pieces if piece["kind"] == "train.loss"} == {0, 1, 2, 3}
    table = CliRunner().invoke(app, ["plan", PARAMS, "--suite", "toy", "--expects"])
    assert table.exit_code == 0
    assert "EVIDENCE" in table.output
    assert f"{len(pieces)} pieces of evidence" in table.output
    assert not (config / "home" / "metrics.db").exists(), "planning makes no database"


def test_the_policy_has_the_length_of_a_history(config: Path) -> None:
    """Three accepted runs printed a number: with `min_history: 3` it is expected, with 5 it is not."""
    (config / "configs" / "policies").mkdir()
    for name, least in (("pr", 5), ("eager", 3)):
        (config / "configs" / "policies" / f"{name}.yaml").write_text(f"name: {name}\nmin_history: {least}\n")
    plan = json.loads(CliRunner().invoke(app, ["plan", PARAMS, "--suite", "toy", "--json"]).stdout)
    train = next(step["id"] for step in plan["steps"] if step["kind"] == "train")
    with Store.open() as store:
        for number in range(3):
            run = a_run(f"r{number}", chain=plan["chain"], mode=plan["mode"], created_at=T0 + number)
            store.runs.create(run)
            store.documents.put(run.id, FoundDocument((EvidenceKey("metric", train, "", "ips"),)))
            store.runs.finish(run.id, Status.PASS, "", T0 + number)

    def metrics(*more: str) -> list[str]:
        done = CliRunner().invoke(app, ["plan", PARAMS, "--suite", "toy", "--expects", "--json", *more])
        assert done.exit_code == 0, done.output
        return [piece["metric"] for piece in json.loads(done.stdout) if piece["kind"] == "metric"]

    assert metrics() == []
    assert metrics("--policy", "eager") == ["ips"]

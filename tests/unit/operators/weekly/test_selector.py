"""The weekly report measures the selection by its new regressions, on a git repository of the toy suite."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.support.certify import ROOT
from tests.support.github.world import CHAIN, PARAMS, commit, git, make_configs
from tests.support.stories import T0, a_run, open_store, record_run

from tipcflow.config.run_documents import SelectorDocument
from tipcflow.config.settings import Settings, settings
from tipcflow.domain import InfraError, Run, Status
from tipcflow.execute.source import snapshot
from tipcflow.store import Store
from tipcflow_operators.weekly.selector import MISSED, measure_selector
from tipcflow_operators.weekly.table import Row

TEXT = (ROOT / "tests" / "support" / "toy_suite" / PARAMS).read_text()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "tipcflow.db") as opened:
        yield opened


@pytest.fixture
def known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(tmp_path / "configs"))
    (tmp_path / "git").mkdir()
    git(tmp_path / "git", "init", "-q")
    commit(tmp_path / "git", {PARAMS: TEXT, "train.py": "", "lib.cc": ""})
    make_configs(
        tmp_path / "configs", tmp_path / "git", ("train_infer_python", "x"), selection={"sentinels": ["toy/toy/x"]}
    )
    return settings()


def ran(store: Store, name: str, sha: str, status: Status, at: float) -> Run:
    return record_run(
        store, a_run(name, chain=CHAIN, suite="toy", suite_commit=sha, created_at=T0 + at), status=status
    )


def test_missed_regression_is_stored_and_reported(store: Store, known: Settings, tmp_path: Path) -> None:
    first = git(tmp_path / "git", "rev-parse", "HEAD").strip()
    good = ran(store, "r1", first, Status.PASS, 0)
    ran(store, "r2", first, Status.INFRA_FAILURE, 10)
    bad = ran(store, "r3", commit(tmp_path / "git", {"lib.cc": "x"}), Status.REGRESSION, 20)
    selector = measure_selector(store, [Row(CHAIN, bad)], known)
    assert selector.rows == ((CHAIN, "o/r", MISSED),)
    measured = store.documents.get("r3", SelectorDocument)
    assert measured == SelectorDocument(base=good.suite_commit, head=bad.suite_commit, verdicts={"o/r": ""})


def test_suite_that_cannot_be_read_is_reported(store: Store, known: Settings) -> None:
    ran(store, "r1", "a" * 40, Status.PASS, 0)
    bad = ran(store, "r2", "b" * 40, Status.FAILED, 20)
    ((chain, repository, text),) = measure_selector(store, [Row(CHAIN, bad)], known).rows
    assert (chain, repository) == (CHAIN, "")
    assert text.startswith("not measured: ")


def test_unreachable_git_server_is_tried_once(
    store: Store, known: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = {"name": "toy", "git": str(tmp_path / "away"), "dialects": ["models/template"]}
    (tmp_path / "configs" / "suites" / "toy.yaml").write_text(yaml.safe_dump(text))
    (tmp_path / "home" / "suites").mkdir(parents=True)
    calls = []
    monkeypatch.setattr(snapshot, "git", lambda *words, **_: calls.append(words) or unreachable())
    ran(store, "r1", "a" * 40, Status.PASS, 0)
    rows = [Row(CHAIN, ran(store, f"r{number}", "b" * 40, Status.FAILED, number)) for number in range(2, 6)]
    selector = measure_selector(store, rows, known)
    assert {text for _, _, text in selector.rows} == {"not measured: git clone failed: away"}
    assert (len(selector.rows), len(calls)) == (4, 1)


def unreachable() -> bytes:
    raise InfraError("git clone failed: away")


def test_measurement_has_a_deadline(
    store: Store, known: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tipcflow_operators.weekly.selector.DEADLINE_S", -1.0)
    ran(store, "r1", git(tmp_path / "git", "rev-parse", "HEAD").strip(), Status.PASS, 0)
    bad = ran(store, "r2", commit(tmp_path / "git", {"lib.cc": "x"}), Status.FAILED, 20)
    ((_, _, text),) = measure_selector(store, [Row(CHAIN, bad)], known).rows
    assert text == "not measured: the measurement of the other regressions took -1 s"
    assert store.documents.get(bad.id, SelectorDocument) is None


def test_chain_that_never_passed_measures_nothing(store: Store, known: Settings) -> None:
    bad = ran(store, "r2", "b" * 40, Status.FAILED, 20)
    selector = measure_selector(store, [Row(CHAIN, bad), Row("toy/toy/x")], known)
    assert selector.rows == ()
    assert "no regression" in selector.line

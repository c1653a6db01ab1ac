"""`tipcflow import`: what is copied, what is refused, and that nothing of ours is lost."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.expected.golden import assert_golden

from tipcflow.cli.importing.command import write_dags
from tipcflow.cli.importing.suite_file import measured_format
from tipcflow.domain import ConfigError

GOLDEN = Path(__file__).parents[3] / "golden"
INPUTS = GOLDEN / "plan" / "inputs"
GOOD = "test_tipc/configs/m/train_infer_python.txt"
CHAIN = "configs/chains/PaddleOCR/m/train_infer_python.txt"
Import = Callable[..., Any]

OTHERS = {
    "m/model_serving.txt": "===serving_params===\nmodel_name:m\npython:python\n",
    "m/model_cpp.txt": "===cpp_infer_params===\nuse_opencv:True\n",
    "m/lite_arm.txt": "runtime_device:ARM_CPU\nlite_arm_work_path:/data\n",
    "m/paddle2onnx.txt": "===paddle2onnx_params===\nmodel_name:m\n",
    "m/train_ptq_infer_python.txt": "===train_params===\nmodel_name:m\npython:python\ngpu_list:0\n",
    "m/noise.txt": "hello\n",
}


def good_text() -> str:
    return (INPUTS / "norm_fleet.txt").read_text().replace("192.168.0.1,192.168.0.2;0,1|0", "0")


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout named PaddleOCR with one good file, one broken one, and one of every other kind."""
    monkeypatch.chdir(tmp_path)
    configs = tmp_path / "PaddleOCR" / "test_tipc" / "configs"
    files = {
        "m/train_infer_python.txt": good_text(),
        "m/broken.txt": good_text().replace("trainer:norm_train\n", ""),
        **OTHERS,
    }
    for name, text in files.items():
        path = configs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (configs / "m" / "latin.txt").write_bytes(b"\xff\xfe")
    return tmp_path / "PaddleOCR"


@pytest.fixture
def bring(tipcflow: Import, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Import:
    (tmp_path / "configs").mkdir()
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(tmp_path / "configs"))
    return lambda *more: tipcflow("import", str(repo), "--suite", "PaddleOCR", *more)


def test_report_equals_the_golden_file(bring: Import, tmp_path: Path) -> None:
    result = bring()
    assert (result.code, result.err) == (0, "")
    page = result.out.replace(str(tmp_path), "HERE")
    assert_golden(GOLDEN / "cli" / "import.txt", page)


def test_import_copies_only_runnable_files_unchanged(bring: Import, tmp_path: Path) -> None:
    bring()
    copied = sorted(path for path in (tmp_path / "configs" / "chains").rglob("*") if path.is_file())
    assert copied == [tmp_path / CHAIN]
    assert (tmp_path / CHAIN).read_text() == good_text()


def test_the_suites_file_is_written_once(bring: Import, tmp_path: Path) -> None:
    bring()
    path = tmp_path / "configs" / "suites" / "PaddleOCR.yaml"
    assert yaml.safe_load(path.read_text()) == {
        "name": "PaddleOCR",
        "folder": "PaddleOCR",
        "dialects": ["PaddleOCR"],
        "params": ["test_tipc/configs/**/*.txt"],
        "log_format": "auto",
    }
    path.write_text(path.read_text().replace("log_format: auto", "") + "log_format: models\n")
    result = bring()
    assert "from its file" in result.out
    assert path.read_text().endswith("log_format: models\n")


def test_the_logs_of_a_suite_are_tried(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "train.log").write_text(
        "[2022/05/01 10:00:00] ppcls INFO: [Train][Epoch 1/2][Iter: 0/12]lr: 0.1, top1: 0.0, loss: 7.05\nhello\n\n"
    )
    assert measured_format(tmp_path) == "recognizes 1 clas of 2 lines in 1 log of the suite"


def test_a_second_import_changes_nothing(bring: Import, tmp_path: Path) -> None:
    bring()
    before = (tmp_path / CHAIN).stat().st_mtime_ns
    assert "1 unchanged" in bring().out
    assert (tmp_path / CHAIN).stat().st_mtime_ns == before


def test_a_generated_file_is_kept_unless_overwrite_is_requested(bring: Import, tmp_path: Path) -> None:
    bring()
    (tmp_path / CHAIN).write_text("ours")
    assert "differs" in bring().out
    assert (tmp_path / CHAIN).read_text() == "ours"
    assert "1 updated" in bring("--update").out
    assert (tmp_path / CHAIN).read_text() == good_text()


def test_removed_files_of_the_suite_are_reported_and_kept(bring: Import, repo: Path, tmp_path: Path) -> None:
    bring()
    extra = (tmp_path / CHAIN).with_name("mine.txt")
    extra.write_text("mine")
    assert "kept: m/mine.txt" in bring().out
    assert extra.read_text() == "mine"
    (repo / GOOD).unlink()
    result = bring("--update")
    assert result.code == 2
    assert "kept: m/train_infer_python.txt" in result.out
    assert (tmp_path / CHAIN).exists()


STUB = '''"""The chains of suite PaddleOCR: one Airflow DAG per params file in configs/chains/PaddleOCR."""

from tipcflow_operators.chain.dag import chain_dags

globals().update(chain_dags("PaddleOCR"))
'''


def test_the_scheduler_gets_one_file_for_the_suite(bring: Import, tmp_path: Path) -> None:
    path = tmp_path / "dags" / "chains_PaddleOCR.py"
    page = json.loads(bring("--json").out)
    assert page["dags"] == {"file": str(path), "state": "new"}
    assert path.read_text() == STUB
    before = path.stat().st_mtime_ns
    assert f"DAGs: {path} unchanged" in bring().out
    assert path.stat().st_mtime_ns == before
    path.write_text("old")
    assert f"DAGs: {path} updated" in bring().out
    assert path.read_text() == STUB


def test_a_suites_name_becomes_a_modules_name_that_no_other_suite_takes(tmp_path: Path) -> None:
    path, state = write_dags("my-suite.v2", tmp_path / "configs")
    assert (path, state) == (tmp_path / "dags" / "chains_my_suite_v2.py", "new")
    calls: list[str] = []
    code = path.read_text().replace("from tipcflow_operators.chain.dag import chain_dags", "")
    exec(compile(code, str(path), "exec"), {"chain_dags": lambda name: calls.append(name) or {}})
    assert calls == ["my-suite.v2"]
    with pytest.raises(ConfigError, match="the name of another suite's") as report:
        write_dags("my_suite_v2", tmp_path / "configs")
    assert "my_suite_v2 and my-suite.v2" in str(report.value)


def test_files_of_the_suites_other_scripts_become_chains_with_their_own_modes(
    tipcflow: Import, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configs = tmp_path / "PaddleClas" / "test_tipc" / "configs" / "net"
    configs.mkdir(parents=True)
    (configs / "train_infer_python.txt").write_text(good_text())
    for name in ("onnx", "blocks"):
        (configs / f"net_{name}.txt").write_text((GOLDEN / "plan" / "families" / f"{name}.txt").read_text())
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(tmp_path / "configs"))
    result = tipcflow("import", str(tmp_path / "PaddleClas"), "--suite", "PaddleClas", "--json")
    files = {Path(file["file"]).stem: file for file in json.loads(result.out)["files"]}
    assert files["net_onnx"]["modes"] == ["paddle2onnx_infer"]
    assert files["net_blocks"]["modes"] == ["lite_train_lite_infer"]
    assert "whole_infer" in files["train_infer_python"]["modes"]
    assert "benchmark_train" not in files["train_infer_python"]["modes"]
    assert {file["state"] for file in files.values()} == {"new"}


def test_no_dag_file_is_written_without_a_chain(bring: Import, repo: Path, tmp_path: Path) -> None:
    (repo / GOOD).unlink()
    assert bring().code == 2
    assert not (tmp_path / "dags").exists()


def test_two_files_of_one_name_are_not_mixed_up(bring: Import, repo: Path, tmp_path: Path) -> None:
    second = repo / "test_tipc/configs/other/m/train_infer_python.txt"
    second.parent.mkdir(parents=True)
    second.write_text(good_text() + "\n")
    page = json.loads(bring("--json").out)
    (refused,) = (f for f in page["files"] if f["file"] == "test_tipc/configs/other/m/train_infer_python.txt")
    assert "same folder and file name" in refused["reason"]
    assert refused["cause"] == "duplicate"
    assert (tmp_path / CHAIN).read_text() == good_text()


def test_json_gives_every_file_its_kind_and_reason(bring: Import) -> None:
    page = json.loads(bring("--json").out)
    kinds = {Path(file["file"]).name: file["kind"] for file in page["files"]}
    assert kinds == {
        "broken.txt": "train",
        "latin.txt": "other",
        "lite_arm.txt": "lite",
        "model_cpp.txt": "cpp",
        "model_serving.txt": "serving",
        "noise.txt": "other",
        "paddle2onnx.txt": "paddle2onnx",
        "train_infer_python.txt": "train",
        "train_ptq_infer_python.txt": "ptq",
    }
    assert all(file["reason"] and file["cause"] for file in page["files"] if file["state"] == "refused")
    assert Counter(file["cause"] for file in page["files"]) == {"": 1, "encoding": 1, "kind": 4, "plan": 3}
    (runs,) = (file for file in page["files"] if file["state"] == "new")
    assert runs["chain"] == "PaddleOCR/m/train_infer_python"
    assert "lite_train_lite_infer" in runs["modes"]


@pytest.mark.parametrize(
    ("arguments", "report"),
    [
        (["nowhere", "--suite", "S"], "no such folder"),
        (["empty", "--suite", "S"], "no params files"),
        (["PaddleOCR", "--suite", "../S"], "cannot be a suite's name"),
        (["PaddleOCR", "--suite", ""], "cannot be a suite's name"),
    ],
)
def test_bad_input_is_one_message_and_writes_nothing(
    tipcflow: Import,
    repo: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    report: str,
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(tmp_path / "configs"))
    result = tipcflow("import", *arguments)
    assert result.code == 2
    assert report in result.err
    assert not (tmp_path / "configs").exists()

"""`tipcflow init`: the proposals for a suite with their reasons, its prompts, and when it writes."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

INPUTS = Path(__file__).resolve().parents[3] / "golden" / "plan" / "inputs"
TRAIN = """import argparse
import paddle

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
"""
SHARES = "".join(
    f"[2022/05/01 10:00:0{epoch}] ppcls INFO: [Train][Epoch {epoch}/5][Iter: 0/12]"
    f"lr: 0.1, top1: 0.{epoch}, loss: 7.05\n"
    for epoch in range(1, 6)
)
CONFIGS = Path(__file__).parents[4] / "configs"
Command = Callable[..., Any]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite with a seeded script, a log, a preparation, one good and one bad file."""
    root = tmp_path / "MySuite"
    files = {
        "test_tipc/configs/m/train_infer_python.txt": good_text(),
        "test_tipc/configs/m/broken.txt": good_text().replace("trainer:norm_train\n", ""),
        "deploy/inference_python/infer.py": "import numpy\n",
        "test_tipc/prepare.sh": "# wget is not called here\nwget http://example.org/data.tar\n",
        "train.py": TRAIN,
        "log/train.log": SHARES,
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "configs").mkdir()
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(tmp_path / "configs"))
    return root


def good_text() -> str:
    return (INPUTS / "norm_fleet.txt").read_text().replace("192.168.0.1,192.168.0.2;0,1|0", "0")


def values(result: Any) -> dict[str, Any]:
    assert result.code == 0, result.err
    return {value["key"]: value for value in json.loads(result.out)["values"]}


def test_every_value_is_proposed_with_its_evidence(tipcflow: Command, repo: Path, tmp_path: Path) -> None:
    result = tipcflow("init", str(repo), "--json")
    found = values(result)
    assert {key: (value["value"], value["why"]) for key, value in found.items() if key != "dialects"} == {
        "framework": (None, "train.py imports paddle, the default"),
        "seed_argument": ("--seed={seed}", "train.py:5 has the option --seed"),
        "downloads": ("cached", "test_tipc/prepare.sh:2 downloads; nodes keep the files"),
        "log_format": ("clas", "recognizes 5 clas of 5 lines in 1 log"),
        "prints": ({"accuracy": "1"}, "the largest of 5 accuracies is 0.5"),
        "predictions": (None, "deploy/inference_python/infer.py does not import auto_log"),
    }
    report = json.loads(result.out)
    assert [file["state"] for file in report["files"]].count("refused") == 1
    predictions, broken = report["unclear"]
    assert predictions.startswith("predictions: what does inference print?")
    assert "`prints: {inference: false}`" in predictions
    assert broken.startswith("cannot be planned: test_tipc/configs/m/broken.txt")
    assert list((tmp_path / "configs").iterdir()) == []


@pytest.mark.parametrize(
    ("file", "text", "key", "value", "why"),
    [
        ("log/train.log", SHARES.replace("top1: 0.", "top1: 5"), "prints", {"accuracy": "%"}, "accuracies is 55"),
        ("log/train.log", "hello\n", "log_format", "auto", "recognizes none of 1 line in 1 log"),
        ("train.py", "import torch\n", "framework", "torch", "train.py imports torch"),
        ("train.py", "import torch\n", "seed_argument", None, "no option --seed in train.py"),
        ("test_tipc/prepare.sh", "tar xf data.tar\n", "prepare", None, "(the default); it downloads nothing"),
    ],
)
def test_other_suites_get_other_values(
    tipcflow: Command, repo: Path, file: str, text: str, key: str, value: object, why: str
) -> None:
    (repo / file).write_text(text)
    found = values(tipcflow("init", str(repo), "--json"))[key]
    assert found["value"] == value
    assert why in found["why"]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("import argparse, os, time, paddle, numpy as np\n", "train.py imports paddle, the default"),
        ("import os, \\\n    torch.nn as nn\n", "train.py imports torch"),
        ("def main():\n    from paddle.io import Dataset\n", "train.py imports paddle, the default"),
        ("print 'Python 2'\nimport os, paddle as p\n", "train.py imports paddle, the default"),
        ("print 'Python 2'\nfrom torch.nn import Linear\n", "train.py imports torch"),
        ("from .paddle import x\nimport paddle_tools\n", "no training script imports paddle or torch directly"),
    ],
)
def test_framework_is_found_in_every_form_of_import(tipcflow: Command, repo: Path, script: str, why: str) -> None:
    (repo / "train.py").write_text(script)
    assert values(tipcflow("init", str(repo), "--json"))["framework"]["why"].startswith(why)


def test_inference_that_imports_autolog_needs_no_predictions(tipcflow: Command, repo: Path) -> None:
    (repo / "deploy/inference_python/infer.py").write_text("def main():\n    import auto_log\n")
    found = values(tipcflow("init", str(repo), "--json"))["predictions"]
    why = "deploy/inference_python/infer.py imports auto_log, whose reports are known"
    assert (found["value"], found["why"], found["unclear"]) == (None, why, "")


@pytest.mark.parametrize(
    ("file", "key"),
    [
        ("log/train.log", "log_format"),
        ("log/train.log", "prints"),
        ("train.py", "seed_argument"),
        ("deploy/inference_python/infer.py", "predictions"),
    ],
)
def test_unmeasurable_values_are_prompted_for(tipcflow: Command, repo: Path, file: str, key: str) -> None:
    (repo / file).unlink()
    result = tipcflow("init", str(repo))
    assert f"{key}: " in result.out.partition("unclear:")[2]


def test_without_a_terminal_nothing_is_written(tipcflow: Command, repo: Path, tmp_path: Path) -> None:
    result = tipcflow("init", str(repo))
    assert (result.code, result.err) == (0, "pass --yes to write it\n")
    assert result.out.endswith("nothing was written\n")
    assert list((tmp_path / "configs").iterdir()) == []


def test_yes_writes_a_suite_that_can_be_planned(tipcflow: Command, repo: Path, tmp_path: Path) -> None:
    result = tipcflow("init", str(repo), "--yes")
    assert result.code == 0, result.err
    file = tmp_path / "configs" / "suites" / "MySuite.yaml"
    written = yaml.safe_load(file.read_text())
    assert (written["name"], written["seed_argument"], written["log_format"]) == (
        "MySuite",
        "--seed={seed}",
        "clas",
    )
    assert "\n# predictions: deploy/inference_python/infer.py does not import auto_log\n" in file.read_text()
    assert "\n# train.py:5 has the option --seed\nseed_argument: " in file.read_text()
    assert f"written: {file}, 1 chain, " in result.out
    assert "1 of 2 params files can be planned; lint: " in result.out
    assert (tmp_path / "configs" / "chains" / "MySuite" / "m" / "train_infer_python.txt").is_file()
    assert (tmp_path / "dags" / "chains_MySuite.py").is_file()
    planned = tipcflow("plan", "test_tipc/configs/m/train_infer_python.txt", "--suite", "MySuite")
    assert planned.code == 0, planned.err
    again = tipcflow("init", str(repo), "--yes")
    assert again.code == 2
    assert "the suite has a file already" in again.err


def test_next_commands_run_a_training_on_several_nodes_if_possible(tipcflow: Command, repo: Path) -> None:
    fleet = repo / "test_tipc" / "configs" / "z" / "train_fleet_infer_python.txt"
    fleet.parent.mkdir()
    fleet.write_text(good_text())
    result = tipcflow("init", str(repo), "--yes")
    assert result.code == 0, result.err
    shown = "test_tipc/configs/z/train_fleet_infer_python.txt --suite MySuite --cluster local"
    assert result.out.endswith(f"tipcflow run  {shown} --mode lite_train_lite_infer\n")


@pytest.mark.slow
def test_a_repository_is_cloned_and_its_only_suite_found(tipcflow: Command, repo: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    repo.rename(outer / "inner")
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", "-C", str(outer), *words], check=True)
    url = f"file://{outer}"
    result = tipcflow("init", url, "--yes")
    assert result.code == 0, result.err
    written = yaml.safe_load((tmp_path / "configs" / "suites" / "outer.yaml").read_text())
    assert (written["git"], written["subfolder"]) == (url, "inner")


def test_scripts_outside_of_the_root_need_the_whole_repository(
    tipcflow: Command, repo: Path, tmp_path: Path
) -> None:
    outer = tmp_path / "outer"
    (outer / "package").mkdir(parents=True)
    repo.rename(outer / "tests")
    (outer / "tests" / "train.py").rename(outer / "package" / "train.py")
    file = outer / "tests" / "test_tipc/configs/m/train_infer_python.txt"
    file.write_text(file.read_text().replace("norm_train:train.py", "norm_train:../package/train.py"))
    result = tipcflow("init", str(outer), "--yes")
    assert result.code == 0, result.err
    written = yaml.safe_load((tmp_path / "configs" / "suites" / "outer.yaml").read_text())
    assert (written["folder"], written["subfolder"]) == (str(outer), "tests")
    assert (written["whole_repository"], written["pythonpath"]) == (True, [".."])
    assert written["seed_argument"] == "--seed={seed}"
    assert "trainings run ../package/train.py, outside of the suite's root" in result.out
    planned = tipcflow("plan", "test_tipc/configs/m/train_infer_python.txt", "--suite", "outer")
    assert planned.code == 0, planned.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "no such folder; found 'nowhere'; expected a git URL, or a checked-out suite"),
        (["empty"], "no params files; found 'empty'; expected test_tipc/configs/**/*.txt"),
        (["."], "--subfolder: several suites; found 'MySuite, other'"),
        (["file:///nowhere.git"], "infra_failure"),
    ],
)
def test_bad_input_is_one_message(tipcflow: Command, repo: Path, arguments: list[str], words: str) -> None:
    Path("empty").mkdir()
    other = Path("other/test_tipc/configs")
    other.mkdir(parents=True)
    result = tipcflow("init", *arguments, "--yes", "--suite", "s")
    assert result.code == (5 if words == "infra_failure" else 2)
    assert words in result.err
    assert list(Path("configs").iterdir()) == []


@pytest.mark.slow
def test_a_repository_that_a_suite_file_describes(tipcflow: Command, repo: Path, tmp_path: Path) -> None:
    """A suite file that was tried has keys that no inspection shows: packages, cases, the environment."""
    subprocess.run(["git", "init", "-q", str(repo)], check=True)
    origin = ["remote", "add", "origin", "git@example.org:group/PaddleClas.git"]
    subprocess.run(["git", "-C", str(repo), *origin], check=True)
    found = values(tipcflow("init", str(repo), "--json"))
    shipped = yaml.safe_load((CONFIGS / "suites" / "PaddleClas.yaml").read_text())
    for key in ("environment", "packages", "pythonpath", "cases", "log_format", "predictions"):
        assert (found[key]["value"], found[key]["why"]) == (
            shipped[key],
            "suites/PaddleClas.yaml describes this repository",
        )
    assert "verified" not in found
    text = json.loads(tipcflow("init", str(repo), "--json", "--yes").out)["text"]
    written = yaml.safe_load((tmp_path / "configs" / "suites" / "MySuite.yaml").read_text())
    assert yaml.safe_load(text) == written
    assert written["folder"] == str(repo)
    assert written["packages"] == shipped["packages"]


@pytest.mark.slow
def test_a_suite_file_for_another_folder_of_the_repository_is_not_used(
    tipcflow: Command, repo: Path, tmp_path: Path
) -> None:
    (tmp_path / "configs" / "suites").mkdir()
    described = {"name": "x", "git": "https://example.org/MySuite", "subfolder": "other", "packages": ["six"]}
    (tmp_path / "configs" / "suites" / "x.yaml").write_text(yaml.safe_dump(described))
    (tmp_path / "configs" / "suites" / "broken.yaml").write_text("a: [")
    assert "packages" not in values(tipcflow("init", str(repo), "--json"))
    described["subfolder"] = "."
    (tmp_path / "configs" / "suites" / "x.yaml").write_text(yaml.safe_dump(described))
    assert values(tipcflow("init", str(repo), "--json"))["packages"]["value"] == ["six"]


def test_url_with_a_login_is_refused_before_its_clone(
    tipcflow: Command, repo: Path, home: Path, tmp_path: Path
) -> None:
    result = tipcflow("init", "https://bot:hidden@localhost:1/MySuite.git")
    assert (result.code, result.out) == (2, "")
    assert "REPOSITORY|FOLDER: the URL contains a login, which each run would store" in result.err
    assert "found 'https://***@localhost:1/MySuite.git'; expected a URL without a login" in result.err
    assert "hidden" not in result.err
    assert not (home / "suites").exists()

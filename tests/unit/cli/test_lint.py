"""`tipcflow lint` as a user and a pipeline see it."""

import csv
import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden"
INPUTS = "tests/golden/plan/inputs"
Tipcflow = Callable[..., Any]

CLEAN = (
    ("192.168.0.1,192.168.0.2;0,1|0", "0"),
    ("lite_train_lite_infer=5|", "lite_train_lite_infer=5|lite_train_whole_infer=5|"),
    ("lite_train_lite_infer=4|", "lite_train_lite_infer=4|lite_train_whole_infer=4|"),
    ("--precision:fp32|int8", "--precision:fp32"),
)


def clean() -> str:
    text = (ROOT / INPUTS / "norm_fleet.txt").read_text()
    for old, new in CLEAN:
        text = text.replace(old, new)
    return text


@pytest.fixture(autouse=True)
def known_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lint finds must not depend on the machine that the test runs on."""
    monkeypatch.setattr("tipcflow.cli.lint._cpu_flags", lambda: frozenset({"avx2"}))


def test_lint_page_equals_the_golden_file(tipcflow: Tipcflow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    result = tipcflow("lint", INPUTS)
    assert (result.code, result.err) == (1, "")
    assert result.out == (GOLDEN / "cli" / "lint.txt").read_text()


def test_warnings_alone_are_not_failure(tipcflow: Tipcflow, tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text(clean().replace("lite_train_whole_infer=5|", ""))
    result = tipcflow("lint", str(path))
    assert result.code == 0
    assert f"{path}:7: mode-entry: warning: " in result.out
    assert "0 errors, 1 warning, 0 notes" in result.out


def test_report_of_a_clean_file_names_the_layout(tipcflow: Tipcflow, tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text(clean())
    result = tipcflow("lint", str(path))
    assert result.code == 0
    assert result.out.splitlines() == [
        "1 file read as models/template, assumed: neither the path nor the text of the file names a suite",
        "0 errors, 0 warnings, 0 notes",
    ]


@pytest.mark.parametrize(
    ("place", "dialect", "why"),
    [
        ("PaddleSeg/test_tipc/configs", "PaddleSeg", "its path names the suite"),
        ("PaddleSeg/contrib/MedicalSeg/test_tipc", "PaddleSeg/contrib/MedicalSeg", "its path names the suite"),
        ("somewhere", "models/template", "neither the path nor the text of the file names a suite"),
    ],
)
def test_the_dialect_is_detected_and_reported(
    tipcflow: Tipcflow, tmp_path: Path, place: str, dialect: str, why: str
) -> None:
    folder = tmp_path / place
    folder.mkdir(parents=True)
    (folder / "train.txt").write_text(clean())
    assert f"1 file read as {dialect}, assumed: {why}\n" in tipcflow("lint", str(tmp_path)).out


def test_the_suites_own_dialects_count(tipcflow: Tipcflow) -> None:
    result = tipcflow("lint", str(ROOT / INPUTS), "--suite", "mobilenet_v3_small")
    assert "1 file read as models/mobilenetv3_prod, of suite mobilenet_v3_small" in result.out
    assert "1 file read as models/template, of suite mobilenet_v3_small" in result.out


def test_files_for_other_scripts_are_distinguished(tipcflow: Tipcflow, tmp_path: Path) -> None:
    (tmp_path / "serving.txt").write_text("===serving_params===\nmodel_name:m\r\n")
    (tmp_path / "train.txt").write_text(clean())
    (tmp_path / "binary.txt").write_bytes(b"\xff\xfe\x00")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "train.txt").write_text("gpu_list:10")
    result = tipcflow("lint", str(tmp_path))
    assert result.code == 1
    assert "serving.txt:2: crlf: error" in result.out
    assert "1 file of kind serving: only line endings were checked" in result.out
    assert ".hidden" not in result.out


def test_json_has_every_file_and_finding(tipcflow: Tipcflow, tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text(clean().replace("gpu_list:0", "gpu_list:10"))
    result = tipcflow("lint", str(path), "--json")
    page = json.loads(result.out)
    (file,) = page["files"]
    (finding,) = file["findings"]
    assert result.code == 1
    assert page["counts"] == {"error": 1}
    assert (file["dialect"], file["kind"]) == ("models/template", "train")
    assert (finding["line"], finding["rule"], finding["severity"]) == (4, "gpu-two-digits", "error")
    assert finding["fix"]


def test_named_file_without_params_is_an_error(tipcflow: Tipcflow, tmp_path: Path) -> None:
    (tmp_path / "noise.txt").write_text("hello\n")
    (tmp_path / "binary.txt").write_bytes(b"a\n\xff")
    result = tipcflow("lint", str(tmp_path / "noise.txt"), str(tmp_path / "binary.txt"))
    assert result.code == 1
    assert "noise.txt:1: line-shape: error" in result.out
    assert "binary.txt:2: not-text: error" in result.out


@pytest.mark.parametrize(
    ("arguments", "report"),
    [
        (["nowhere"], "no such file or folder"),
        (["."], "contains no params file"),
        ([], "PATH: is missing"),
        ([".", "--suite", "nope"], "unknown suite"),
    ],
)
def test_bad_input_is_one_message(
    tipcflow: Tipcflow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], report: str
) -> None:
    monkeypatch.chdir(tmp_path)
    result = tipcflow("lint", *arguments)
    assert (result.code, result.out) == (2, "")
    assert report in result.err


def test_rules_are_the_reference_page(tipcflow: Tipcflow) -> None:
    result = tipcflow("lint", "--rules")
    assert result.code == 0
    assert result.out == (ROOT / "docs" / "reference" / "lint.md").read_text()


FAMILIES = ROOT / "tests" / "golden" / "plan" / "families"


@pytest.mark.parametrize(
    ("suite", "file", "dialect"),
    [
        ("PaddleClas", "onnx.txt", "PaddleClas/paddle2onnx"),
        ("PaddleDetection", "onnx_det.txt", "PaddleDetection/paddle2onnx"),
        ("PaddleDetection", "pipeline.txt", "PaddleDetection/pipeline"),
        ("PaddleClas", "blocks.txt", "PaddleClas/dy2static"),
    ],
)
def test_files_of_other_scripts_are_linted_by_their_line_maps(
    tipcflow: Tipcflow, tmp_path: Path, suite: str, file: str, dialect: str
) -> None:
    path = tmp_path / suite / file
    path.parent.mkdir()
    path.write_text((FAMILIES / file).read_text())
    result = tipcflow("lint", str(path))
    assert f"1 file read as {dialect}, assumed: its path names the suite" in result.out
    assert "0 errors" in result.out
    lines = path.read_text().split("\n")
    path.write_text("\n".join([*lines[:3], *lines[4:]]))
    result = tipcflow("lint", str(path))
    assert result.code == 1
    assert ": line-shape: error: " in result.out


def test_files_without_a_script_are_only_checked_for_line_endings(tipcflow: Tipcflow, tmp_path: Path) -> None:
    path = tmp_path / "PaddleRec" / "onnx.txt"
    path.parent.mkdir()
    path.write_text((FAMILIES / "onnx.txt").read_text())
    assert "1 file of kind paddle2onnx: only line endings were checked" in tipcflow("lint", str(path)).out


def test_csv_has_a_row_per_finding(tipcflow: Tipcflow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    rows = list(csv.DictReader(io.StringIO(tipcflow("lint", INPUTS, "--csv").out)))
    files = json.loads(tipcflow("lint", INPUTS, "--json").out)["files"]
    findings = [(file["file"], str(each["line"]), each["rule"]) for file in files for each in file["findings"]]
    assert [(row["file"], row["line"], row["rule"]) for row in rows] == findings
    both = tipcflow("lint", INPUTS, "--csv", "--json")
    assert (both.code, both.out) == (2, "")


def test_csv_of_a_clean_file_is_a_header(tipcflow: Tipcflow, tmp_path: Path) -> None:
    (tmp_path / "clean.txt").write_text(clean())
    said = tipcflow("lint", str(tmp_path / "clean.txt"), "--csv")
    assert (said.code, said.out) == (0, "file,line,rule,severity,message,fix,dialect\n")


@pytest.fixture
def suite_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A suite file with a misspelled glob in `params` and in a case; the suite has one params file."""
    file = tmp_path / "suite" / "test_tipc" / "configs" / "m" / "train.txt"
    file.parent.mkdir(parents=True)
    file.write_text(clean())
    (tmp_path / "configs" / "suites").mkdir(parents=True)
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(tmp_path / "configs"))
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "configs" / "suites" / "toy.yaml"
    path.write_text(
        "name: toy\nfolder: suite\ndialects: [models/template]\n"
        "params: ['test_tipc/configs/**/*.txt', 'test_tipc/config/**/*.txt']\n"
        "cases:\n  - params: ['test_tipc/configs/n/*']\n    env: {A: '1'}\n"
    )
    return path


def test_globs_of_the_suite_file_without_a_match_are_findings(tipcflow: Tipcflow, suite_file: Path) -> None:
    result = tipcflow("lint", "suite", "--suite", "toy")
    assert result.code == 0
    unmatched = "matches no file of the suite"
    fix = "    fix: correct or remove the glob; paths are relative to the suite's root"
    assert result.out.splitlines() == [
        f"{suite_file}:4: glob-unmatched: warning: params: 'test_tipc/config/**/*.txt' {unmatched}",
        fix,
        f"{suite_file}:6: glob-unmatched: warning: cases.0.params: 'test_tipc/configs/n/*' {unmatched}",
        fix,
        "1 file read as models/template, of suite toy",
        "1 suite file: its globs were compared with the suite's files",
        "0 errors, 2 warnings, 0 notes",
    ]
    page = json.loads(tipcflow("lint", "suite", "--suite", "toy", "--json").out)
    assert [file["kind"] for file in page["files"]] == ["suite", "train"]
    assert [finding["line"] for finding in page["files"][0]["findings"]] == [4, 6]


def test_default_glob_without_a_match_is_reported_at_the_name(tipcflow: Tipcflow, suite_file: Path) -> None:
    suite_file.write_text("dialects: [models/template]\nname: toy\nfolder: suite/test_tipc\n")
    result = tipcflow("lint", "suite", "--suite", "toy")
    assert f"{suite_file}:2: glob-unmatched: warning: params: 'test_tipc/configs/**/*.txt' matches" in result.out


def test_globs_of_a_suite_without_a_clone_are_not_checked(tipcflow: Tipcflow, suite_file: Path) -> None:
    suite_file.write_text(suite_file.read_text().replace("folder: suite", "git: https://git.example.org/toy.git"))
    result = tipcflow("lint", "suite", "--suite", "toy")
    assert (result.code, "glob-unmatched" in result.out) == (0, False)
    assert "1 suite file: its globs were not checked: this machine has no files of the suite\n" in result.out


def test_globs_of_a_clone_are_compared_with_the_branch_of_its_server(
    tipcflow: Tipcflow, suite_file: Path, home: Path
) -> None:
    source = suite_file.parents[2] / "suite"
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "x"],
    ):
        subprocess.run(["git", "-C", str(source), *command], check=True)
    (home / "suites").mkdir(parents=True)
    subprocess.run(["git", "clone", "-q", str(source), str(home / "suites" / "toy")], check=True)
    suite_file.write_text(suite_file.read_text().replace("folder: suite", "git: https://git.example.org/toy.git"))
    assert tipcflow("lint", "suite", "--suite", "toy").out.count("glob-unmatched") == 2

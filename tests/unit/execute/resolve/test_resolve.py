"""The row of a run, before its request is resolved."""

from pathlib import Path

import pytest
from tests.support.stories import open_store

from tipcflow.execute.request import RunRequest
from tipcflow.execute.resolve.resolve import create_run


@pytest.mark.parametrize(
    ("text", "suite"),
    [
        ("name: own\nunknown_key: 1\n", "own"),
        ("name: a/b\n", "my_file"),
        ("name: [\n", "my_file"),
        ("text\n", "my_file"),
        ("", "my_file"),
        (None, "my_file"),
    ],
)
def test_a_run_with_an_invalid_suite_file_has_a_named_suite(tmp_path: Path, text: str | None, suite: str) -> None:
    file = tmp_path / "_my file.yaml"
    if text is not None:
        file.write_text(text)
    request = RunRequest("tiny/train_infer_python.txt", str(file), "lite_train_lite_infer", "local", tmp_path)
    with open_store(tmp_path / "own.db") as store:
        create_run(store, request, "r")
        run = store.runs.get("r")
    assert (run.suite, run.chain) == (suite, f"{suite}/tiny/train_infer_python")


@pytest.mark.parametrize(("name", "suite"), [("known", "other"), ("a/b", "a_b"), ("../..", "suite")])
def test_a_named_suite_is_stored_under_the_name_in_its_file(tmp_path: Path, name: str, suite: str) -> None:
    (tmp_path / "suites").mkdir()
    (tmp_path / "suites" / "known.yaml").write_text("name: other\n")
    request = RunRequest("tiny/train_infer_python.txt", name, "lite_train_lite_infer", "local", tmp_path)
    with open_store(tmp_path / "own.db") as store:
        create_run(store, request, "r")
        assert store.runs.get("r").suite == suite

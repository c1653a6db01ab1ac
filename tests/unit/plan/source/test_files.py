"""The suite's checkout as a list of paths, and what bash makes of a command's words."""

import pytest

from tipcflow.plan.source.eval_words import eval_text, runs_python
from tipcflow.plan.source.files import FileView, ListedFiles, NoFiles

FILES = ListedFiles(
    ["tools/train.py", "./deploy//python/infer.py", "data/a.txt", "data/b.txt", "data/.hidden.txt"]
)


def test_both_views_have_the_protocol() -> None:
    assert isinstance(FILES, FileView)
    assert isinstance(NoFiles(), FileView)


@pytest.mark.parametrize("path", ["tools/train.py", "tools/", "./deploy/python", "deploy/python/infer.py"])
def test_listed_path_and_its_folders_exist(path: str) -> None:
    assert FILES.exists(path)
    assert not NoFiles().exists(path)


@pytest.mark.parametrize("path", ["train.py", "tools/train", "deploy/python/infer.py/x"])
def test_other_paths_do_not_exist(path: str) -> None:
    assert not FILES.exists(path)


@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        ("data/*.txt", ["data/a.txt", "data/b.txt"]),
        ("data/.*", ["data/.hidden.txt"]),
        ("*/train.py", ["tools/train.py"]),
        ("*", ["data", "deploy", "tools"]),
        ("*.py", []),
        ("data/[a]*", ["data/a.txt"]),
    ],
)
def test_pattern_matches_part_by_part(pattern: str, paths: list[str]) -> None:
    assert FILES.glob(pattern) == paths
    assert NoFiles().glob(pattern) == []


def test_unquoted_variable_is_split_at_bars_and_expanded() -> None:
    assert eval_text("cat data/*.txt|sort", FILES) == "cat data/*.txt sort", "a field is one pattern"
    assert eval_text("cat|data/*.txt|none/*.txt", FILES) == "cat data/a.txt data/b.txt none/*.txt"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("python3.7 train.py", True),
        ("A=1 env B=2 timeout 10m /usr/bin/python train.py", True),
        ("cd tools; 'python' train.py", True),
        ("bash python train.py", False),
        ("echo python", False),
        ("pythonic train.py", False),
        ("", False),
    ],
)
def test_command_that_starts_python(command: str, expected: bool) -> None:
    assert runs_python(command) is expected

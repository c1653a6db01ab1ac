"""The commits of a bisection, from real repositories."""

import subprocess
from pathlib import Path

import pytest

from tipcflow.config.suite import Suite
from tipcflow.domain import ConfigError
from tipcflow.execute.bisection.commits import Commit, commits_between

pytestmark = pytest.mark.slow


class Repository:
    """main: 1 - 2 - M - 3 - docs, where M merges `other` (o1, o2), and `docs` changes another folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "suite").mkdir(parents=True)
        self.git("init", "-q", "-b", "main")
        self.commit("1")
        self.git("checkout", "-q", "-b", "other")
        self.commit("o1")
        self.commit("o2")
        self.git("checkout", "-q", "main")
        self.commit("2")
        self.git("merge", "-q", "--no-ff", "-m", "M", "other")
        self.commit("3")
        self.commit("docs", folder=".")

    def git(self, *words: str) -> None:
        command = ["git", "-C", str(self.root), "-c", "user.name=t", "-c", "user.email=t@example.org", *words]
        subprocess.run(command, check=True, capture_output=True)

    def commit(self, name: str, *, folder: str = "suite") -> None:
        (self.root / folder / f"{name}.txt").write_text(name)
        self.git("add", "-A")
        self.git("commit", "-qm", name)
        self.git("tag", f"v{name}")


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    repository = Repository(tmp_path / "repository")
    return Suite(name="s", folder=str(repository.root / "suite"), dialects=("tipc",))


def titles(suite: Suite, good: str, bad: str, tmp_path: Path) -> list[str]:
    return [commit.title for commit in commits_between(suite, good, bad, cache=tmp_path / "cache")]


def test_a_merge_is_one_commit_and_other_folders_do_not_count(suite: Suite, tmp_path: Path) -> None:
    assert titles(suite, "v1", "main", tmp_path) == ["1", "2", "M", "3"]
    assert titles(suite, "v2", "v3", tmp_path) == ["2", "M", "3"]


@pytest.mark.parametrize(
    ("good", "bad", "words"),
    [
        ("none", "main", "--good: the suite has no such ref; found 'none'"),
        ("v1", "none", "--bad: the suite has no such ref; found 'none'"),
        ("main", "v1", "--good: is not an earlier commit of the bad end; found 'main'"),
        ("vo1", "main", "--good: is not an earlier commit of the bad end; found 'vo1'"),
        ("v1", "v1", "--good: is the same commit as the bad end; found 'v1'"),
        ("v3", "main", "--bad: changes nothing in the suite's folder since the good end; found 'main'"),
    ],
)
def test_wrong_refs_are_one_error(suite: Suite, tmp_path: Path, good: str, bad: str, words: str) -> None:
    with pytest.raises(ConfigError) as error:
        commits_between(suite, good, bad, cache=tmp_path / "cache")
    assert words in str(error.value)


def test_a_suite_without_git_is_refused(tmp_path: Path) -> None:
    plain = Suite(name="s", folder=str(tmp_path), dialects=("tipc",))
    with pytest.raises(ConfigError, match="is not a git checkout"):
        commits_between(plain, "a", "b", cache=tmp_path / "cache")


def test_a_long_title_is_cut() -> None:
    commit = Commit("0123456789" * 4, "word " * 40)
    assert str(commit) == f"01234567 '{'word ' * 11}word…'"

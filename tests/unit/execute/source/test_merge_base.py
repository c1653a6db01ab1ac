"""A change is compared with what its branch's target measured up to where it begins, with real repositories."""

import copy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import T0, a_run, open_store, record_run

from tipcflow.config.suite import Suite
from tipcflow.domain import ConfigError, Run, Status
from tipcflow.domain.run_documents import MergeBaseDocument
from tipcflow.execute.source import merge_base
from tipcflow.execute.verdict.check_context import past_runs
from tipcflow.store import Store

pytestmark = pytest.mark.slow

MODE = "lite_train_lite_infer"


class Repository:
    """main: 1 - 2 - M - 3, where M merges branch `other` (o), and branch `change` (c) begins at M."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.commits: dict[str, str] = {}
        root.mkdir()
        self.git("init", "-q", "-b", "main")
        self.commit("1")
        self.git("checkout", "-q", "-b", "other")
        self.commit("o")
        self.git("checkout", "-q", "main")
        self.commit("2")
        self.git("merge", "-q", "--no-ff", "-m", "M", "other")
        self.commits["M"] = self.git("rev-parse", "HEAD")
        self.git("checkout", "-q", "-b", "change")
        self.commit("c")
        self.git("checkout", "-q", "main")
        self.commit("3")

    def copy(self, root: Path) -> "Repository":
        shutil.copytree(self.root, root)
        made = copy.copy(self)
        made.root, made.commits = root, dict(self.commits)
        return made

    def git(self, *args: str) -> str:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "commit.gpgsign=false"]
        command = ["git", "-C", str(self.root), *who, *args]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout.strip()

    def commit(self, name: str) -> None:
        (self.root / name).write_text(name)
        self.git("add", "-A")
        self.git("commit", "-qm", name)
        self.commits[name] = self.git("rev-parse", "HEAD")

    def names(self, commits: list[str]) -> str:
        return "".join(sorted(name for name, commit in self.commits.items() if commit in commits))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository(tmp_path_factory.mktemp("template") / "repository")


@pytest.fixture
def repository(template: Repository, tmp_path: Path) -> Repository:
    return template.copy(tmp_path / "repository")


@pytest.fixture(params=["folder", "git"])
def suite(request: pytest.FixtureRequest, repository: Repository) -> Suite:
    return Suite(name="s", dialects=("d",), **{request.param: str(repository.root)})


def found(suite: Suite, repository: Repository, base: str, tested: str) -> tuple[str, str]:
    everything = repository.commits.values()
    cache = repository.root.parent / "cache"
    cache.mkdir(exist_ok=True)
    report = merge_base.merge_base(suite, base, repository.commits[tested], cache=cache, measured=everything)
    return repository.names([report.commit]), repository.names(report.commits)


@pytest.mark.parametrize(
    ("base", "tested", "expected"),
    [
        ("main", "c", ("M", "12M")),
        ("3", "c", ("M", "12M")),
        ("1", "c", ("1", "1")),
        ("main", "3", ("3", "123M")),
        ("main", "o", ("o", "1o")),
    ],
)
def test_the_branch_up_to_where_the_change_begins(
    suite: Suite, repository: Repository, base: str, tested: str, expected: tuple[str, str]
) -> None:
    assert found(suite, repository, repository.commits.get(base, base), tested) == expected


def test_only_measured_commits_and_the_merge_base_are_returned(repository: Repository, tmp_path: Path) -> None:
    suite = Suite(name="s", folder=str(repository.root), dialects=("d",))
    measured = [repository.commits["1"], "0" * 40]
    report = merge_base.merge_base(
        suite, "main", f"{repository.commits['c']}+local", cache=tmp_path, measured=measured
    )
    assert repository.names(report.commits) == "1M"
    assert "0" * 40 not in report.commits


@pytest.mark.parametrize(
    ("base", "words"),
    [
        ("no-ref", "--base: the suite has no such ref; found 'no-ref'"),
        ("alone", "--base: has no common history with the tested commit; found 'alone'"),
    ],
)
def test_a_base_that_cannot_be_one(repository: Repository, tmp_path: Path, base: str, words: str) -> None:
    repository.git("checkout", "-q", "--orphan", "alone")
    repository.commit("alone")
    suite = Suite(name="s", folder=str(repository.root), dialects=("d",))
    with pytest.raises(ConfigError) as error:
        merge_base.merge_base(suite, base, repository.commits["c"], cache=tmp_path, measured=())
    assert words in str(error.value)


@pytest.mark.parametrize(("depth", "cut"), [(2, True), (3, True), (9, False)])
def test_a_clone_without_the_history_is_refused(
    repository: Repository, tmp_path: Path, depth: int, cut: bool
) -> None:
    clone = tmp_path / "clone"
    source = f"file://{repository.root}"
    repository.git("clone", "-q", "--depth", str(depth), "--no-single-branch", source, str(clone))
    suite = Suite(name="s", folder=str(clone), dialects=("d",))
    everything, commit = repository.commits.values(), repository.commits["c"]
    if cut:
        with pytest.raises(ConfigError) as error:
            merge_base.merge_base(suite, "origin/main", commit, cache=tmp_path, measured=everything)
        assert "--base: the clone is shallow" in str(error.value)
        assert "fetch-depth: 0" in str(error.value)
    else:
        report = merge_base.merge_base(suite, "origin/main", commit, cache=tmp_path, measured=everything)
        assert repository.names(report.commits) == "12M"


def test_a_folder_without_git_has_no_base(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x")
    with pytest.raises(ConfigError, match="not a git checkout"):
        merge_base.merge_base(
            Suite(name="s", folder=str(tmp_path), dialects=("d",)), "main", "", cache=tmp_path, measured=()
        )


@pytest.fixture
def store(tmp_path: Path) -> Any:
    """Runs of main at 1, M and 3, of another change, and an earlier one of this change's commit, in that order."""
    with open_store(tmp_path / "t.db") as opened:
        for number, (commit, change) in enumerate([("1", ""), ("M", ""), ("3", ""), ("o", "o"), ("c", "c")]):
            run = a_run(f"at-{commit}", suite_commit=commit, created_at=T0 + number, status=None, ended_at=None)
            record_run(opened, run, status=Status.PASS)
            if change:
                opened.documents.put(
                    run.id,
                    MergeBaseDocument(
                        commit="M",
                        commits=(
                            "1",
                            "M",
                        ),
                    ),
                )
        yield opened


def past(store: Store, run: Run) -> dict[str, bool]:
    """Run -> whether its numbers count, of those that a run is compared with."""
    return {one.run: bool(one.medians) for one in past_runs(store, run, {}, limit=20)}


def test_a_change_is_compared_with_its_merge_bases_history(store: Store) -> None:
    run = a_run("again", suite_commit="c", created_at=T0 + 9)
    store.runs.create(run)
    store.documents.put(
        run.id,
        MergeBaseDocument(
            commit="M",
            commits=(
                "1",
                "M",
            ),
        ),
    )
    # An earlier run of the same commit shows whether the losses are reproducible, not which side is slow.
    assert past(store, run) == {"at-1": True, "at-M": True, "at-c": False}


def test_branch_run_is_not_compared_with_changes(store: Store) -> None:
    run = a_run("weekly", suite_commit="4", created_at=T0 + 9)
    store.runs.create(run)
    assert past(store, run) == {"at-1": True, "at-M": True, "at-3": True}

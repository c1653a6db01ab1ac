"""Chains selected by the files that their runs opened, and the measured selection, on a git repository."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.certify import ROOT
from tests.support.github.world import CHAIN, PARAMS, commit, git, make_configs
from tests.support.stories import T0, a_run, open_store, record_run

from tipcflow.config.repository import Repository, Selection, load_repositories
from tipcflow.config.run_documents import OpenedDocument, SelectorDocument
from tipcflow.domain import Run, Status
from tipcflow.execute.changes import (
    Candidates,
    Selections,
    candidates,
    choose,
    false_green,
    measure,
    with_opened,
)
from tipcflow.execute.changes.recorded import WHOLE
from tipcflow.selection import Because, Change
from tipcflow.store import Store

pytestmark = pytest.mark.slow

TOY = ROOT / "tests" / "support" / "toy_suite"
OTHER = "toy/toy/train_other"
# A helper that is imported by a computed name: only a record shows its use.
TRAIN = "import importlib\nimportlib.import_module('hel' + 'per')\n"


class World:
    """A repository of the suite, its controller, and a database."""

    def __init__(self, folder: Path, store: Store) -> None:
        self.suite, self.configs, self.cache, self.store = (
            folder / "git",
            folder / "configs",
            folder / "cache",
            store,
        )
        self.suite.mkdir()
        git(self.suite, "init", "-q")
        text = (TOY / PARAMS).read_text()
        self.first = self.commit({PARAMS: text, "train.py": TRAIN, "helper.py": "", "README.md": ""})
        make_configs(self.configs, self.suite, ("train_infer_python", "train_other"))

    def commit(self, files: dict[str, str]) -> str:
        return commit(self.suite, files)

    @property
    def repository(self) -> Repository:
        (found,) = load_repositories(self.configs)
        rules = Selection(sentinels=(OTHER,))
        return found.model_copy(update={"selection": rules})

    def run(self, name: str, sha: str, status: Status = Status.PASS, *opened: str, at: float = T0) -> Run:
        run = a_run(name, chain=CHAIN, suite="toy", mode=WHOLE, suite_commit=sha, created_at=at)
        run = record_run(self.store, run, status=status)
        if opened:
            self.store.documents.put(run.id, OpenedDocument(commit=sha, paths=opened))
        return run

    def chosen(self, head: str, *paths: str) -> dict[str, Because]:
        options, change = self.options(head, *paths)
        return {one.chain: one.because for one in choose(options, change, self.repository).chosen}

    def options(self, head: str, *paths: str) -> tuple[Candidates, Change]:
        change = Change(paths)
        options = candidates(self.repository, head, self.configs, cache=self.cache)
        known = with_opened(options, change, self.repository, self.store, self.configs, cache=self.cache)
        return known, change


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_store(tmp_path / "tipcflow.db") as store:
        yield World(tmp_path, store)


def test_recorded_file_selects_its_chain_and_no_sentinel(world: World) -> None:
    head = world.commit({"helper.py": "x = 1\n"})
    assert world.chosen(head, "helper.py") == {OTHER: Because.SENTINEL}
    world.run("r1", world.first, Status.PASS, PARAMS, "helper.py", "train.py")
    assert world.chosen(head, "helper.py") == {CHAIN: Because.OPENED}


def test_record_of_changed_code_is_stale(world: World) -> None:
    world.run("r1", world.first, Status.PASS, PARAMS, "helper.py", "train.py")
    merged = world.commit({"train.py": "import late\n", "late.py": ""})
    head = world.commit({"late.py": "x = 1\n"})
    options, _ = world.options(head, "late.py")
    assert {one.chain: one.is_stale for one in options.chains if one.opened} == {CHAIN: True}
    assert world.chosen(head, "late.py") == {CHAIN: Because.NEEDED}
    world.run("r2", merged, Status.PASS, PARAMS, "late.py", "train.py", at=T0 + 10)
    assert world.chosen(head, "late.py") == {CHAIN: Because.OPENED}


def test_record_is_not_stale_after_the_change_or_in_other_files(world: World) -> None:
    world.run("r1", world.first, Status.PASS, PARAMS, "helper.py", "train.py")
    world.commit({"README.md": "more\n"})
    head = world.commit({"train.py": TRAIN + "\n"})
    options, _ = world.options(head, "train.py")
    assert {one.chain: one.is_stale for one in options.chains if one.opened} == {CHAIN: False}


def test_record_of_an_unknown_commit_is_stale(world: World) -> None:
    world.run("r1", "b" * 40, Status.PASS, "train.py")
    options, _ = world.options("HEAD", "helper.py")
    assert [one.is_stale for one in options.chains if one.opened] == [True]


def measured(world: World, run: Run, before: Run) -> SelectorDocument | None:
    return measure(selections(world), run, before)


def selections(world: World, **fields: Any) -> Selections:
    repository = world.repository.model_copy(update=fields)
    return Selections(world.store, [repository], world.configs, world.cache)


def test_regression_that_the_selection_misses_is_a_false_green(world: World) -> None:
    good = world.run("r1", world.first)
    bad = world.run("r2", world.commit({"helper.py": "x = 1\n"}), Status.REGRESSION, at=T0 + 10)
    assert measured(world, bad, good) == SelectorDocument(
        base=good.suite_commit, head=bad.suite_commit, verdicts={world.repository.name: ""}
    )
    late = world.run("r3", world.commit({"train.py": "x = 2\n"}), Status.FAILED, at=T0 + 20)
    assert measured(world, late, bad) is not None
    rate = false_green(world.store, days=100_000)
    assert (rate.missed, rate.regressions) == (((CHAIN, "r2"),), 2)
    assert rate.line == (
        "false-green rate: 50 %: the selection would have missed 1 of 2 regressions of full runs in the last "
        "100000 days"
    )
    assert false_green(world.store, "other/name", days=100_000).regressions == 0


def test_regression_without_a_change_of_the_suite_measures_nothing(world: World) -> None:
    good, bad = world.run("r1", world.first), world.run("r2", world.first, Status.FAILED, at=T0 + 10)
    assert measured(world, bad, good) is None
    local = world.run("r3", f"{world.first}+local", Status.FAILED, at=T0 + 20)
    assert measured(world, local, good) is None
    assert false_green(world.store).line.endswith("no regression of a full run was measured in the last 182 days")


def test_chain_that_no_repository_may_run_is_not_measured(world: World) -> None:
    good = world.run("r1", world.first)
    bad = world.run("r2", world.commit({"train.py": "x = 2\n"}), Status.FAILED, at=T0 + 10)
    assert measure(selections(world, chains=("toy/toy/other*",)), bad, good) is None

"""Chains that may run for a repository, and the paths that differ between two commits."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.certify import ROOT
from tests.support.github.world import CHAIN, PARAMS, commit, git, make_configs

from tipcflow.config.repository import Repository, load_repositories
from tipcflow.config.suite import Suite, load_suite
from tipcflow.domain import ConfigError, InfraError
from tipcflow.execute.changes import candidates, changed_between, choose
from tipcflow.execute.changes.choose import folder_of, inside, lines_of
from tipcflow.selection import Change

TOY = ROOT / "tests" / "support" / "toy_suite"


class World:
    """A git repository with the suite in its folder `ml`, and the configuration of its controller."""

    def __init__(self, folder: Path) -> None:
        self.repository_folder, self.configs, self.cache = folder / "git", folder / "configs", folder / "cache"
        self.suite_folder = self.repository_folder / "ml"
        self.suite_folder.mkdir(parents=True)
        git(self.repository_folder, "init", "-q")
        self.first = self.commit({f"ml/{PARAMS}": (TOY / PARAMS).read_text(), "ml/train.py": "pass\n"})
        make_configs(self.configs, self.suite_folder, ("train_infer_python", "train_other"))

    def commit(self, files: dict[str, str]) -> str:
        return commit(self.repository_folder, files)

    @property
    def suite(self) -> Suite:
        return load_suite("toy", self.configs)

    def repository(self, **fields: Any) -> Repository:
        (found,) = load_repositories(self.configs)
        return found.model_copy(update=fields)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_candidates_are_the_controllers_chains_with_the_files_at_the_commit(world: World) -> None:
    found = candidates(world.repository(), "HEAD", world.configs, cache=world.cache)
    assert {one.chain: one.roots for one in found.chains} == {CHAIN: (PARAMS,), "toy/toy/train_other": ()}
    assert (found.commit, found.folder, found.others) == (world.first, "ml/", {})
    assert "train.py" in found.tree.paths


def test_change_cannot_add_a_chain(world: World) -> None:
    world.commit({"ml/test_tipc/configs/toy/new.txt": (TOY / PARAMS).read_text()})
    found = candidates(world.repository(), "HEAD", world.configs, cache=world.cache)
    assert sorted(one.chain for one in found.chains) == [CHAIN, "toy/toy/train_other"]


def test_globs_of_the_repository_limit_its_chains(world: World) -> None:
    repository = world.repository(chains=("**/train_other",))
    found = candidates(repository, "HEAD", world.configs, cache=world.cache)
    assert [one.chain for one in found.chains] == ["toy/toy/train_other"]


def test_chain_without_the_mode_is_listed_with_the_reason(world: World) -> None:
    found = candidates(world.repository(), "HEAD", world.configs, cache=world.cache, mode="none_such")
    assert found.chains == ()
    assert found.others[CHAIN] == "this kind of file does not support mode none_such"
    assert choose(found, Change((), True), world.repository()).others[CHAIN] == found.others[CHAIN]


@pytest.mark.slow
def test_known_commits_need_no_git_server(world: World) -> None:
    """A weekly report measures many regressions of a commit, a pull request reads its commit several times."""
    own = {"name": "toy", "dialects": ["models/template"], "subfolder": "ml"}
    text = {**own, "git": str(world.repository_folder)}
    (world.configs / "suites" / "toy.yaml").write_text(yaml.safe_dump(text))
    world.cache.mkdir()
    second = world.commit({"ml/train.py": "x = 1\n"})
    assert candidates(world.repository(), second, world.configs, cache=world.cache).commit == second
    third = world.commit({"ml/train.py": "x = 2\n"})
    world.repository_folder.rename(world.repository_folder.with_name("away"))
    assert candidates(world.repository(), world.first, world.configs, cache=world.cache).commit == world.first
    assert changed_between(world.suite, world.first, second, cache=world.cache) == (("train.py",), True)
    for ref in ("main", third):
        with pytest.raises(InfraError, match="git fetch failed"):
            candidates(world.repository(), ref, world.configs, cache=world.cache)
    with pytest.raises(InfraError, match="git fetch failed"):
        changed_between(world.suite, world.first, third, cache=world.cache)


def test_cluster_without_the_framework_is_one_error(world: World) -> None:
    node = {"name": "a", "address": "192.0.2.1", "python": "/p", "workspace": "/w", "frameworks": ["torch"]}
    (world.configs / "clusters" / "local.yaml").write_text(yaml.safe_dump({"name": "local", "nodes": [node]}))
    words = "suite toy needs paddlepaddle; found 'cluster local has no paddlepaddle'"
    with pytest.raises(ConfigError, match=words):
        candidates(world.repository(), "HEAD", world.configs, cache=world.cache)


def test_changed_params_file_chooses_its_chain(world: World) -> None:
    found = candidates(world.repository(), "HEAD", world.configs, cache=world.cache)
    choice = choose(found, Change((PARAMS,), True), world.repository())
    assert [one.chain for one in choice.chosen] == [CHAIN]


def test_changed_paths_are_relative_to_the_suite(world: World) -> None:
    last = world.commit({"ml/train.py": "import os\n", "README.md": "text\n"})
    paths, complete = changed_between(world.suite, world.first, last, cache=world.cache)
    assert (sorted(paths), complete) == (["README.md", "train.py"], True)


@pytest.mark.slow
def test_whole_repository_follows_files_outside_of_the_suite(world: World) -> None:
    path = world.configs / "suites" / "toy.yaml"
    settings = {"folder": str(world.repository_folder), "subfolder": "ml", "whole_repository": True}
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **settings}))
    package = {"package/__init__.py": "", "package/net.py": "", "README.md": ""}
    first = world.commit({"ml/train.py": "import package.net\n", **package})
    last = world.commit({"package/net.py": "pass\n"})
    paths, complete = changed_between(world.suite, first, last, cache=world.cache)
    assert (paths, complete) == (("../package/net.py",), True)
    found = candidates(world.repository(), "HEAD", world.configs, cache=world.cache)
    assert [one.chain for one in choose(found, Change(paths, True), world.repository()).chosen] == [CHAIN]
    assert not choose(found, Change(("../README.md",), True), world.repository()).chosen


def test_lost_commit_means_that_the_change_is_unknown(world: World) -> None:
    assert changed_between(world.suite, "0" * 40, world.first, cache=world.cache) == ((), False)


def test_the_suite_can_be_a_folder_of_its_repository(world: World) -> None:
    assert folder_of(world.suite, cache=world.cache) == "ml/"
    assert inside("ml/train.py", "ml/", world.suite) == "train.py"
    assert inside("other/train.py", "ml/", world.suite) == "other/train.py"
    assert inside("train.py", "", world.suite) == "train.py"


def test_lines_of_a_params_file_exclude_keys_without_a_value(world: World) -> None:
    world.commit({f"ml/{PARAMS}": "title\nmodel_name:toy\npython:null\nmodel_name:again\n"})
    found = candidates(world.repository(), "HEAD", world.configs, cache=world.cache)
    assert lines_of(found.tree, PARAMS) == {"model_name": 2}

"""Chains that certify a framework build, and what is wrong in a section `builds`, with file and line."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.certify import ROOT
from tests.support.github.world import make_configs

from tipcflow.domain import ConfigError
from tipcflow.domain.build import FrameworkBuild
from tipcflow.execute.changes import BuildChain, chains_of_build, requested_build

TOY = ROOT / "tests" / "support" / "toy_suite"
NAMES = ("train_infer_python", "train_other", "train_third")
CHAINS = tuple(f"toy/toy/{name}" for name in NAMES)


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    make_configs(tmp_path, TOY, NAMES, builds={"paddlepaddle": ["**/train_other", "toy/toy/train_i*"]})
    return tmp_path


def add(configs: Path, file: str, **fields: Any) -> None:
    own = {"name": f"o/{file}", "connection": "app", "suite": "toy", "cluster": "local", **fields}
    (configs / "repositories" / f"{file}.yaml").write_text(yaml.safe_dump(own, sort_keys=False))


def names(configs: Path, framework: str = "paddlepaddle") -> list[str]:
    return [chain.chain for chain in chains_of_build(framework, configs)]


def test_declared_chains_have_the_params_of_the_repository(configs: Path) -> None:
    made = chains_of_build("paddlepaddle", configs)
    assert made[0] == BuildChain(CHAINS[1], "o/r", "lite_train_lite_infer", "local", "pr")
    assert [chain.chain for chain in made] == [CHAINS[1], CHAINS[0]]


def test_repositories_are_joined_and_equal_runs_start_once(configs: Path) -> None:
    (configs / "policies" / "strict.yaml").touch()
    add(configs, "s", builds={"paddlepaddle": ["**"]})
    assert names(configs) == [CHAINS[1], CHAINS[0], CHAINS[2]]
    add(configs, "s", policy="strict", builds={"paddlepaddle": ["**/train_other"]})
    assert [(chain.chain, chain.policy) for chain in chains_of_build("paddlepaddle", configs)] == [
        (CHAINS[1], "pr"),
        (CHAINS[0], "pr"),
        (CHAINS[1], "strict"),
    ]


def test_chains_that_the_repository_may_not_run_are_not_selected(configs: Path) -> None:
    add(configs, "r", name="o/r", chains=["**/train_o*"], builds={"paddlepaddle": ["**"]})
    assert names(configs) == [CHAINS[1]]


def test_missing_section_builds_is_an_error(configs: Path) -> None:
    add(configs, "r")
    with pytest.raises(
        ConfigError, match="repositories: builds: no repository declares the chains of a framework"
    ):
        names(configs)


def test_unknown_framework_is_an_error(configs: Path) -> None:
    add(configs, "s", builds={"paddlepaddle-gpu": ["**"]})
    words = "of this framework; found 'torch'; expected one of paddlepaddle, paddlepaddle-gpu"
    with pytest.raises(ConfigError, match=words):
        names(configs, "torch")


def test_framework_of_another_suite_is_refused(configs: Path) -> None:
    add(configs, "s", builds={"torch": ["**"]})
    words = r"s\.yaml:6: builds: suite toy does not use this framework; found 'torch'; expected paddlepaddle"
    with pytest.raises(ConfigError, match=words):
        names(configs, "torch")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, f"supports mode lite_train_lite_infer; found '\\*\\*/missing'; expected a glob of {CHAINS[0]}, "),
        ({"mode": "no_such_mode"}, "expected a chain in configs/chains"),
    ],
)
def test_glob_without_a_chain_is_an_error(configs: Path, fields: dict[str, str], words: str) -> None:
    """A glob without a chain is an error even if others have one: a renamed chain must not be forgotten."""
    add(configs, "s", **fields, builds={"paddlepaddle": ["**/missing", "**/train_other"]})
    line = 7 + len(fields)
    with pytest.raises(ConfigError, match=rf"s\.yaml:{line}: builds\.paddlepaddle: matches no chain.*{words}"):
        names(configs)


NONE = "0" * 64
WHEEL = "https://x.example/toyframe-1.0-py3-none-any.whl"


def test_requested_build_is_a_release_or_a_wheel(tmp_path: Path) -> None:
    release = requested_build("PaddlePaddle_GPU==3.4.0", "", "", home=tmp_path, hosts="")
    assert release == FrameworkBuild(name="paddlepaddle-gpu", version="3.4.0")
    wheel = requested_build("", WHEEL, NONE, home=tmp_path, hosts="*.example")
    assert wheel == FrameworkBuild(name="toyframe", version="1.0", wheel=WHEEL.rpartition("/")[2], sha256=NONE)


@pytest.mark.parametrize(
    ("framework", "wheel", "sha256", "words"),
    [
        ("", "", "", "names one build of a framework; found 'none'"),
        ("a==1", WHEEL, NONE, "names one build of a framework"),
        ("paddlepaddle>=3.4", "", "", "does not name one release; found 'paddlepaddle>=3.4'"),
        ("paddlepaddle", "", "", "does not name one release"),
        ("paddle paddle", "", "", "is not a valid requirement"),
        ("a==1", "", NONE, "--sha256: has no effect without a wheel"),
        ("", WHEEL, "", "the wheel needs a hash"),
        ("", "https://y.org/toyframe-1.0-py3-none-any.whl", NONE, "is not in TIPCFLOW_WHEEL_HOSTS; found 'y.org'"),
        ("", "https://x.example/toyframe.tar.gz", NONE, "is not a wheel"),
        ("", "toyframe-1.0-py3-none-any.whl", NONE, "no such file"),
    ],
)
def test_wrong_requests_of_a_build(tmp_path: Path, framework: str, wheel: str, sha256: str, words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        requested_build(framework, wheel, sha256, home=tmp_path, hosts="*.example")

"""Which build a run installs, and which Pythons can use it."""

import pytest
from packaging.requirements import Requirement
from tests.support.stories import some_facts

from tipcflow.domain import InfraError
from tipcflow.domain.build import FrameworkBuild
from tipcflow.execute.node.builds import release_of, with_build


@pytest.mark.parametrize(
    ("text", "installed"),
    [
        ("paddlepaddle==3.4.0", FrameworkBuild(name="paddlepaddle", version="3.4.0")),
        ("toyframe==1.0", FrameworkBuild(name="toyframe", version="1.0")),
        ("paddlepaddle==3.3.1", None),
        ("paddlepaddle-gpu==3.3.1", None),
        ("paddlepaddle==3.4.*", None),
        ("paddlepaddle>=3.4", None),
        ("paddlepaddle", None),
    ],
)
def test_a_release_that_a_node_lacks_is_installed(text: str, installed: FrameworkBuild | None) -> None:
    assert release_of(Requirement(text), [some_facts("a")]) == installed


def test_without_a_requirement_nothing_is_installed() -> None:
    assert release_of(None, [some_facts("a")]) is None


def test_build_is_installed_if_any_node_lacks_the_release() -> None:
    facts = [some_facts("a"), some_facts("b", framework_version="3.2.0")]
    assert release_of(Requirement("paddlepaddle==3.3.1"), facts) is not None


@pytest.mark.parametrize(
    ("tags", "suits"),
    [
        ("py3-none-any", True),
        ("py2.py3-none-any", True),
        ("cp311-cp311-manylinux1_x86_64", True),
        ("cp38-abi3-manylinux2014_x86_64", True),
        ("py37-none-any", True),
        ("cp310-cp310-manylinux1_x86_64", False),
        ("cp312-abi3-linux_x86_64", False),
        ("py2-none-any", False),
    ],
)
def test_a_wheel_is_for_some_pythons(tags: str, suits: bool) -> None:
    build = FrameworkBuild(name="toyframe", version="1.0", wheel=f"toyframe-1.0-{tags}.whl", sha256="a" * 64)
    if not suits:
        with pytest.raises(InfraError, match=f"is for {tags}, node a has Python 3.11.7"):
            with_build(some_facts("a"), build)
        return
    fact = with_build(some_facts("a"), build)
    assert (fact.framework, fact.framework_version) == ("toyframe", "1.0 (wheel aaaaaaaaaaaa)")

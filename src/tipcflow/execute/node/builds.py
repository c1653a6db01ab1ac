"""Which framework build a run installs, and whether its nodes can use it."""

import re
from collections.abc import Sequence

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from tipcflow.domain import InfraError, NodeFacts
from tipcflow.domain.build import FrameworkBuild
from tipcflow.execute.node.preflight import installed_version

_CPYTHON = re.compile(r"(cp|py)(\d)(\d*)")


def release_of(requirement: Requirement | None, facts: Sequence[NodeFacts]) -> FrameworkBuild | None:
    """Return the release to install: the one that `NAME==VERSION` names, unless every node has it."""
    build = pinned(requirement) if requirement else None
    if requirement is None or build is None or all(_has(fact, requirement) for fact in facts):
        return None
    return build


def pinned(requirement: Requirement) -> FrameworkBuild | None:
    """The release that a requirement names; None for a range of versions."""
    pins = list(requirement.specifier)
    if len(pins) != 1 or pins[0].operator != "==" or pins[0].version.endswith(".*"):
        return None
    return FrameworkBuild(name=canonicalize_name(requirement.name), version=pins[0].version)


def _has(fact: NodeFacts, requirement: Requirement) -> bool:
    version = installed_version(fact, requirement)
    try:
        return bool(version) and requirement.specifier.contains(Version(version or ""), prereleases=True)
    except InvalidVersion:
        return False


def with_build(fact: NodeFacts, build: FrameworkBuild) -> NodeFacts:
    """Return the facts of a node as the steps of the run find it, once the build is installed.

    Raises:
        InfraError: the wheel is for another Python.
    """
    if build.wheel and fact.python and not _suits(build.wheel, fact.python):
        tags = "-".join(build.wheel.removesuffix(".whl").split("-")[-3:])
        raise InfraError(f"wheel {build.wheel} is for {tags}, node {fact.node} has Python {fact.python}")
    return fact.model_copy(
        update={
            "framework": build.module,
            "framework_version": build.label,
            "framework_commit": "",
            "packages": {**fact.packages, build.name: build.version},
        }
    )


def _suits(wheel: str, python: str) -> bool:
    """Whether one of the wheel's tags is for this Python; pip checks the platform."""
    major, minor = (int(part) for part in python.split(".")[:2])
    for tag in parse_wheel_filename(wheel)[3]:
        match = _CPYTHON.fullmatch(tag.interpreter)
        if not match or int(match[2]) != major:
            continue
        wanted = int(match[3] or 0)
        if not match[3] or wanted == minor or (wanted < minor and (tag.abi == "abi3" or match[1] == "py")):
            return True
    return False

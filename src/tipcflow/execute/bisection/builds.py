"""The framework builds of a bisection: a file with one build per line, oldest first."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from tipcflow.bisect import Touches
from tipcflow.domain import ConfigError
from tipcflow.domain.build import FrameworkBuild
from tipcflow.domain.errors import why_unreadable

_HASH = re.compile(r"(\S+)\s+--hash=sha256:([0-9a-f]{64})")
_EXPECTED = "NAME==VERSION, or a wheel (address or path) and --hash=sha256:HASH"
# Characters of a list; a device such as /dev/zero has no end.
_LONGEST = 1_000_000
MOST_BUILDS = 1000


@dataclass(frozen=True)
class Build:
    """A release or a wheel of the framework.

    Attributes:
        id: its version; of a wheel also the first digits of its hash, as in `Run.framework`.
        requirement: NAME==VERSION of a release, '' for a wheel.
        wheel, sha256: address or path of a wheel, and its hash.
    """

    NOUN: ClassVar[str] = "build"
    touches: ClassVar[Touches] = Touches.OTHER

    id: str
    requirement: str = ""
    wheel: str = ""
    sha256: str = ""

    @property
    def title(self) -> str:
        """What is installed."""
        return self.requirement or self.wheel

    @property
    def short(self) -> str:
        """The name of the build in messages."""
        return self.id

    def __str__(self) -> str:
        return self.id


def read_builds(path: Path) -> tuple[Build, ...]:
    """Read a list of builds; empty lines and `#` comments are ignored.

    Raises:
        ConfigError: unreadable or too long file, or an invalid list (`parse_builds`).
    """
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_LONGEST + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"cannot be read: {why_unreadable(error)}",
            key="--builds",
            found=str(path),
            expected="a file with one build per line",
        ) from error
    if len(text) > _LONGEST:
        raise ConfigError(
            "is too long", key="--builds", found=str(path), expected=f"at most {_LONGEST} characters"
        )
    return parse_builds(text.splitlines(), str(path))


def parse_builds(lines: Sequence[str], where: str) -> tuple[Build, ...]:
    """Return the builds of a list; empty lines and `#` comments are ignored.

    Args:
        where: the file or the param, for messages.

    Raises:
        ConfigError: invalid line, a build listed twice, too many builds, or fewer than two.
    """
    builds: dict[str, Build] = {}
    for number, line in enumerate(lines, 1):
        text = line.partition(" #")[0].strip()
        if not text or text.startswith("#"):
            continue
        build = _build(text, f"{where}:{number}")
        if build.id in builds:
            raise ConfigError("lists the same build twice", key=f"{where}:{number}", found=build.id)
        builds[build.id] = build
    if not 2 <= len(builds) <= MOST_BUILDS:
        raise ConfigError(
            "lists too few builds" if len(builds) < 2 else "lists too many builds",
            key=where,
            found=str(len(builds)),
            expected=f"a good one, later ones, a bad one; at most {MOST_BUILDS}",
        )
    return tuple(builds.values())


def _build(text: str, where: str) -> Build:
    if ".whl" not in text:
        return _release(text, where)
    matched = _HASH.fullmatch(text)
    if matched is None:
        raise ConfigError("is not a wheel with its hash", key=where, found=text, expected=_EXPECTED)
    wheel, sha256 = matched.groups()
    file_name = wheel.rpartition("/")[2]
    try:
        name, version, *_ = parse_wheel_filename(file_name)
    except InvalidWheelFilename as error:
        raise ConfigError("is not the name of a wheel", key=where, found=file_name) from error
    label = FrameworkBuild(name=name, version=str(version), wheel=file_name, sha256=sha256).label
    return Build(label, wheel=wheel, sha256=sha256)


def _release(text: str, where: str) -> Build:
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise ConfigError("is not a framework build", key=where, found=text, expected=_EXPECTED) from error
    pins = list(requirement.specifier)
    if len(pins) != 1 or pins[0].operator != "==" or pins[0].version.endswith("*"):
        raise ConfigError("names no single version", key=where, found=text, expected=_EXPECTED)
    return Build(pins[0].version, requirement=text)

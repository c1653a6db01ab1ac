"""Values of a suite file that only dialects, params files and the suite's own files show to be wrong."""

import os
import posixpath
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from tipcflow.config.suite import Suite, place_in_suite
from tipcflow.domain import ConfigError, Plan, StepKind
from tipcflow.domain.errors import did_you_mean
from tipcflow.execute.request import RunRequest
from tipcflow.execute.source.snapshot import Snapshot, git, matches_glob
from tipcflow.params import load_dialect
from tipcflow.params.registry.names import known_dialects


def check_dialects(suite: Suite, name: str, config_dir: Path) -> None:
    """Load the dialects of a suite.

    Args:
        name: the suite as requested: its name, or the path of its file.

    Raises:
        ConfigError: a dialect does not exist, or its own file is wrong.
    """
    for index, dialect in enumerate(suite.dialects):
        try:
            load_dialect(dialect)
        except ConfigError as error:
            if error.file:
                raise
            file, line = place_in_suite(name, config_dir, "dialects", index)
            known = known_dialects()
            raise ConfigError(
                "there is no such dialect",
                file=file,
                line=line,
                key=f"dialects.{index}",
                found=dialect,
                expected=f"one of {', '.join(known)}",
                hint=did_you_mean(dialect, known),
            ) from error


@dataclass(frozen=True)
class SuiteGlob:
    """A glob of a suite file.

    Attributes:
        key: `params`, or `cases.0.params` for example.
        file, line: its place; the line of `name` for a default that the file does not have.
    """

    glob: str
    key: str
    file: str
    line: int


def unmatched_globs(suite: Suite, name: str, config_dir: Path, cache: Path) -> list[SuiteGlob] | None:
    """Return the globs of `params` and `cases.params` that match no file of the suite, in their order.

    Args:
        name: the suite as requested: its name, or the path of its file.
        cache: folder with the clones of `git:` suites; git servers are not contacted.

    Returns:
        None if this machine does not have the suite's files.
    """
    files = _names_here(suite, cache)
    if files is None:
        return None
    unmatched = []
    for index, glob in enumerate(suite.params):
        if not any(matches_glob(file, glob) for file in files):
            place: tuple[str | int, ...] = ("params", index) if "params" in suite.model_fields_set else ("name",)
            unmatched.append(SuiteGlob(glob, "params", *place_in_suite(name, config_dir, *place)))
    for number, case in enumerate(suite.cases):
        for index, glob in enumerate(case.params):
            if not any(fnmatchcase(file, glob) for file in files):
                place = ("cases", number, "params", index)
                key = f"cases.{number}.params"
                unmatched.append(SuiteGlob(glob, key, *place_in_suite(name, config_dir, *place)))
    return unmatched


def _names_here(suite: Suite, cache: Path) -> list[str] | None:
    """Return the paths of the suite's files, relative to its root, without a request to a git server."""
    root = Path(suite.folder or cache / suite.name, suite.subfolder)
    if not root.is_dir():
        return None
    if suite.git:  # runs read the clone's branch of the server, not its working tree
        return git(root, "ls-tree", "-r", "-z", "--name-only", "origin/HEAD").decode().split("\0")[:-1]
    names = []
    for folder, folders, files in os.walk(root):
        folders[:] = [child for child in folders if child != ".git"]
        below = os.path.relpath(folder, root)
        names += [posixpath.normpath(posixpath.join(below, file)) for file in files]
    return names


def with_prepare(plan: Plan, suite: Suite, snapshot: Snapshot, request: RunRequest) -> Plan:
    """Return the plan if its preparation script is among the suite's files.

    Raises:
        ConfigError: the script does not exist.
    """
    script = posixpath.normpath(suite.prepare)
    prepares = any(step.kind is StepKind.PREPARE and step.id == "prepare" for step in plan.steps)
    if not prepares or script in snapshot.names:
        return plan
    file, line = place_in_suite(request.suite, request.config_dir, "prepare")
    if not line:  # the default, which the step itself reports
        return plan
    similar = did_you_mean(script, [name for name in snapshot.names if name.endswith(".sh")])
    raise ConfigError(
        "the suite has no such file",
        file=file,
        line=line,
        key="prepare",
        found=suite.prepare,
        expected="a script, relative to the suite's root, or '' for none",
        hint=similar,
    )


@contextmanager
def in_suite_file(request: RunRequest) -> Iterator[None]:
    """Add the place in the suite file to an error about a replaced slot, as the planner does not know the file."""
    try:
        yield
    except ConfigError as error:
        start, _, slot = error.key.partition(".")
        if error.file or start != "slots":
            raise
        file, line = place_in_suite(request.suite, request.config_dir, "slots", slot)
        raise ConfigError(
            error.what,
            file=file,
            line=line,
            key=error.key,
            found=error.found,
            expected=error.expected,
            hint=error.hint,
        ) from error

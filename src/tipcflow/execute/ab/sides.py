"""The two versions of an A/B comparison, and its limits, checked before anything runs."""

from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.ab import least_pairs
from tipcflow.config.suite import load_suite
from tipcflow.domain import ConfigError
from tipcflow.domain.errors import KEYS_SEPARATOR
from tipcflow.execute.ab.comparison import Side
from tipcflow.execute.node.builds import pinned
from tipcflow.execute.node.preflight import parse_framework
from tipcflow.execute.source.snapshot import checkout, commit_at

if TYPE_CHECKING:
    from tipcflow.execute.ab.progress import Limits
    from tipcflow.execute.request import RunRequest


def check_limits(limits: "Limits") -> None:
    """Refuse numbers of pairs that can decide nothing.

    Raises:
        ConfigError: the pairs are too few for the error; names the option of the CLI.
    """
    least = least_pairs(limits.error)
    key, most = ("--pairs", limits.pairs) if limits.pairs else ("--max-pairs", limits.most_pairs)
    if most < least:
        raise ConfigError(
            f"is too small for an error of {limits.error:g}",
            key=key,
            found=str(most),
            expected=f"at least {least}",
        )


def check_release(framework: str, key: str) -> None:
    """Refuse a framework that does not name one release: both sides might run the same one.

    Raises:
        ConfigError: not `NAME==VERSION`, nor ''.
    """
    if framework and pinned(parse_framework(framework, key)) is None:
        raise ConfigError("does not name one release", key=key, found=framework, expected="NAME==VERSION")


def check_sides(first: "RunRequest", second: "RunRequest", home: Path) -> None:
    """Check both sides as `sides_of`, without a network: refs of a `git:` suite are not resolved.

    Raises:
        ConfigError: as `sides_of`.
    """
    suite = load_suite(first.suite, first.config_dir)
    if suite.folder and Path(suite.folder, suite.subfolder).is_dir():
        sides_of(first, second, home)
        return
    for label, request in (("a", first), ("b", second)):
        check_release(request.framework, f"--framework-{label}")
    tested = [
        (each.suite_ref, each.framework, each.framework_wheel, each.framework_sha256) for each in (first, second)
    ]
    if tested[0] == tested[1]:
        raise _same(first.suite_ref or "the default branch")


def sides_of(first: "RunRequest", second: "RunRequest", home: Path) -> tuple[Side, Side]:
    """Return both sides; their refs and frameworks are checked, and differ.

    Raises:
        ConfigError: unknown ref, invalid framework, or no difference between A and B; names the CLI's options.
    """
    suite = load_suite(first.suite, first.config_dir)
    root, clone = checkout(suite, home / "suites"), bool(suite.git)
    sides, tested = [], []
    for label, request in (("A", first), ("B", second)):
        commit = ""
        if request.suite_ref:
            commit = commit_at(root, request.suite_ref, clone=clone, key=f"--{label.lower()}")
        check_release(request.framework, f"--framework-{label.lower()}")
        ref = f"{request.suite_ref} ({commit[:8]})" if commit else "the working tree"
        build = request.framework or request.framework_wheel.rpartition("/")[2]
        sides.append(Side(label, f"{ref}, {build}" if build else ref, request, commit))
        tested.append((commit, request.framework, request.framework_wheel, request.framework_sha256))
    if tested[0] == tested[1]:
        raise _same(sides[0].name)
    return sides[0], sides[1]


def _same(name: str) -> ConfigError:
    return ConfigError(
        "A and B are the same version",
        key=KEYS_SEPARATOR.join(("--a", "--b", "--framework-a", "--framework-b")),
        found=name,
        expected="two refs, frameworks or wheels",
    )

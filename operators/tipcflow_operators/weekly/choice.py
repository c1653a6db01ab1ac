"""Selects and orders the chains of a weekly run."""

import difflib
import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from tipcflow.config.cluster import missing_framework
from tipcflow.config.suite import load_suite
from tipcflow.domain import Cluster, ConfigError
from tipcflow.domain.run.names import ChainName, ModeName
from tipcflow_operators.chain.catalog import chains_of

_NEAR = 5


def all_chains(config_dir: Path) -> list[str]:
    """Return the names of all chains of all suites."""
    root = config_dir / "chains"
    suites = sorted(path.name for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    return [chain.name for suite in suites for chain in chains_of(suite, config_dir)]


def without_mode(names: Iterable[str], mode: str, config_dir: Path) -> dict[str, str]:
    """Return the chains whose kind of file does not support the mode, with the reason.

    Does not return chains with a broken file: their runs report the error.
    """
    wanted, missing = set(names), {}
    for suite in sorted({ChainName.parse(name).suite for name in wanted}):
        for chain in chains_of(suite, config_dir):
            if chain.name in wanted and ModeName.parse(mode).mode not in chain.modes:
                missing[chain.name] = f"this kind of file does not support mode {mode}"
    return missing


def without_framework(
    names: Iterable[str], cluster: Cluster, config_dir: Path, *, requested: str = ""
) -> dict[str, str]:
    """Return the chains whose framework the cluster does not have, with the reason.

    Does not return chains of a suite with an invalid file: their runs report the error.

    Args:
        requested: framework requirement of the runs; a release that it pins is installed.
    """
    missing: dict[str, str] = {}
    by_suite = groupby(sorted(names), key=lambda name: ChainName.parse(name).suite)
    for suite, chains in by_suite:
        try:
            why = missing_framework(load_suite(suite, config_dir), cluster, requested=requested)
        except ConfigError:
            continue
        missing |= dict.fromkeys(chains, why) if why else {}
    return missing


def refuse_named(globs: Sequence[str], names: Sequence[str], missing: Mapping[str, str]) -> None:
    """Refuse a glob whose chains all lack their framework: a user who names chains wants them to run.

    Args:
        globs: the globs of the request; each matches a chain.
        names: all chains.
        missing: chains without their framework, with the reason.

    Raises:
        ConfigError: names the glob and the reason.
    """
    for glob in globs:
        fitting = fnmatch.filter(names, glob)
        if fitting and all(name in missing for name in fitting):
            raise ConfigError(
                f"no chain of it can run: {missing[fitting[0]]}",
                key="chains",
                found=glob,
                expected="chains whose framework the nodes of the cluster have",
                hint="choose another cluster, or see `frameworks` in its file",
            )


def chosen_chains(globs: object, names: Sequence[str]) -> list[str]:
    """Return the chains that match any of the globs, sorted by name; `*` matches any characters, including `/`.

    Raises:
        ConfigError: not a list of globs, or a glob without a match; the message lists similar names.
    """
    if not isinstance(globs, list) or not globs or not all(isinstance(glob, str) and glob for glob in globs):
        raise ConfigError(
            "is not a list of chain names", key="chains", found=repr(globs)[:80], expected='for example ["*"]'
        )
    chosen = set()
    for glob in globs:
        fitting = [name for name in names if fnmatch.fnmatchcase(name, glob)]
        if not fitting:
            raise _unknown(glob, names)
        chosen.update(fitting)
    return sorted(chosen)


def longest_first(names: Sequence[str], durations: Mapping[str, float]) -> list[str]:
    """Return the chains in start order, the longest first, which shortens the whole run.

    Chains of unknown duration come first.

    Args:
        durations: chain -> seconds.
    """
    return sorted(names, key=lambda name: (-durations.get(name, float("inf")), name))


def _unknown(glob: str, names: Sequence[str]) -> ConfigError:
    """Return the error for a glob without a match, with similar names."""
    by_part = {part: name for name in reversed(names) for part in _parts(name)}
    near = [
        by_part[part] for part in difflib.get_close_matches(glob.strip("*/"), list(by_part), _NEAR, cutoff=0.7)
    ]
    if not names:
        hint = "there are no chains; create them with `tipcflow import`"
    elif near:
        hint = "similar: " + ", ".join(dict.fromkeys(near))
    else:
        hint = f"there are {len(names)} chains, for example " + ", ".join(names[:_NEAR])
    return ConfigError("matches no chain", key="chains", found=glob, expected="<suite>/<model>/<file>", hint=hint)


def _parts(name: str) -> list[str]:
    """Return all consecutive parts of a name: a/b/c -> a, a/b, a/b/c, b, b/c, c."""
    parts = ChainName.parse(name).parts
    return ["/".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1)]

"""Which chains a weekly run certifies, and in which order."""

import difflib
import fnmatch
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from operators.chain.catalog import chains_of
from tipcflow.domain import ConfigError

_NEAR = 5


def all_chains(config_dir: Path) -> list[str]:
    """The names of all chains of all suites."""
    root = config_dir / "chains"
    suites = sorted(path.name for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    return [chain.name for suite in suites for chain in chains_of(suite, config_dir)]


def without_mode(names: Iterable[str], mode: str, config_dir: Path) -> list[str]:
    """Those of the chains whose files are of a kind that has no such mode: of a suite's other scripts.

    A file that is broken is none of them: its run says what is wrong.
    """
    wanted, missing = set(names), []
    for suite in sorted({name.partition("/")[0] for name in wanted}):
        for chain in chains_of(suite, config_dir):
            if chain.name in wanted and mode.partition(":")[0] not in chain.modes:
                missing.append(chain.name)
    return missing


def chosen_chains(globs: object, names: Sequence[str]) -> list[str]:
    """The chains that fit one of the globs, by name; `*` stands for any characters, `/` too.

    Raises:
        ConfigError: it is no list of globs, or nothing fits one of them; near names are told.
    """
    if not isinstance(globs, list) or not globs or not all(isinstance(glob, str) and glob for glob in globs):
        raise ConfigError(
            "is no list of chain names", key="chains", found=repr(globs)[:80], expected='for example ["*"]'
        )
    chosen = set()
    for glob in globs:
        fitting = [name for name in names if fnmatch.fnmatchcase(name, glob)]
        if not fitting:
            raise _unknown(glob, names)
        chosen.update(fitting)
    return sorted(chosen)


def longest_first(names: Sequence[str], durations: Mapping[str, float]) -> list[str]:
    """Chains in the order that they begin in: the longest first, so that it is not what all wait for at the end.

    One whose duration is not known may be the longest.

    Args:
        durations: chain -> seconds.
    """
    return sorted(names, key=lambda name: (-durations.get(name, float("inf")), name))


def _unknown(glob: str, names: Sequence[str]) -> ConfigError:
    """The error for a glob that nothing fits, with names of which a part resembles it."""
    by_part = {part: name for name in reversed(names) for part in _parts(name)}
    near = [
        by_part[part] for part in difflib.get_close_matches(glob.strip("*/"), list(by_part), _NEAR, cutoff=0.7)
    ]
    if not names:
        hint = "there are no chains: `tipcflow import` writes them to configs/chains"
    elif near:
        hint = "near: " + ", ".join(dict.fromkeys(near))
    else:
        hint = f"there are {len(names)} chains, among them " + ", ".join(names[:_NEAR])
    return ConfigError("no chain fits", key="chains", found=glob, expected="<suite>/<model>/<file>", hint=hint)


def _parts(name: str) -> list[str]:
    """A name, and all neighbours of its parts: a/b/c -> a, a/b, a/b/c, b, b/c, c."""
    parts = name.split("/")
    return ["/".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1)]

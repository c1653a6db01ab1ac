"""Shell completion of names: fast, and silent when something is wrong."""

import contextlib
from collections.abc import Callable, Sequence
from typing import TypeVar

_LIMIT = 500
_Choices = Sequence[tuple[str, str] | str]
_T = TypeVar("_T")


def runs(incomplete: str) -> _Choices:
    """Complete a run by its ID, or `latest`; the help of a run is its status and chain."""
    known = or_nothing(_newest_runs)
    rows: _Choices = [(run, f"{status or 'running'} {chain}") for run, chain, status in known]
    newest: _Choices = [("latest", "the newest run")] if rows else []
    return [*newest, *rows]


def chains(incomplete: str) -> _Choices:
    """Complete a chain with runs by its name, or by its model."""
    from tipcflow.domain.run.names import ChainName

    names = sorted({chain for _, chain, _ in or_nothing(_newest_runs)})
    models = sorted({parsed.model for name in names if (parsed := ChainName.parse_or_none(name))})
    matching = [name for name in names if name.lower().startswith(incomplete.lower())]
    return matching or models if incomplete else names


def chains_or_runs(incomplete: str) -> _Choices:
    """Complete a chain or a run."""
    return [*chains(incomplete), *runs(incomplete)]


def catalog_chains(incomplete: str) -> _Choices:
    """Complete a chain of configs/chains, as Airflow runs them."""
    return or_nothing(_catalog)


def clusters(incomplete: str) -> _Choices:
    """Complete the name of a cluster."""
    return or_nothing(lambda: _files("clusters"))


def suites(incomplete: str) -> _Choices:
    """Complete the name of a suite."""
    return or_nothing(lambda: _files("suites"))


def policies(incomplete: str) -> _Choices:
    """Complete the name of a policy."""
    return or_nothing(lambda: _files("policies"))


def repositories(incomplete: str) -> _Choices:
    """Complete the name of a repository on GitHub."""
    return or_nothing(lambda: _files("repositories"))


def modes(incomplete: str) -> _Choices:
    """Complete a mode."""
    from tipcflow.plan import ALL_MODES

    return list(ALL_MODES)


def or_nothing(read: Callable[[], Sequence[_T]]) -> Sequence[_T]:
    """Return what a function returns, or an empty list: a shell shows errors between the words of the user."""
    with contextlib.suppress(Exception):
        return read()
    return []


def _newest_runs() -> list[tuple[str, str, str]]:
    from tipcflow.config.settings import settings
    from tipcflow.store.names import newest_runs

    return newest_runs(settings().database_url, limit=_LIMIT)


def _files(folder: str) -> list[str]:
    from tipcflow.config.settings import settings

    return sorted(path.stem for path in (settings().config_dir / folder).glob("*.yaml"))


def _catalog() -> list[str]:
    from tipcflow.config.settings import settings

    root = settings().config_dir / "chains"
    return sorted(path.relative_to(root).with_suffix("").as_posix() for path in root.glob("*/*/*.txt"))


# Parameter of a command, or `function.parameter` -> what completes it.
COMPLETERS: dict[str, Callable[[str], _Choices]] = {
    "run": runs,
    "chain": chains,
    "chains": catalog_chains,
    "of": chains_or_runs,
    "cluster": clusters,
    "suite": suites,
    "suites.name": suites,
    "policy": policies,
    "mode": modes,
    "modes": modes,
    "repository": repositories,
}

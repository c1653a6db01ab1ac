"""Loads two versions over all chains."""

from typing import TYPE_CHECKING

from tipcflow.domain import ConfigError
from tipcflow.domain.run.names import ChainName
from tipcflow.report.overview.today import GREEN
from tipcflow.report.overview.versions import Pair, Side, Versions, kind_of_pair, versions_of

if TYPE_CHECKING:
    from tipcflow.store import Store
    from tipcflow.store.queries.states import Line

_Key = tuple[str, str, str]


def load_versions(store: "Store", new: str, base: str = "", *, suite: str = "", chain: str = "") -> Versions:
    """Return the newest run of each chain, mode and environment class on two versions, side by side.

    Args:
        new, base: a framework build, or at least 7 characters of a suite commit; no base shows one version alone.
        suite, chain: only chains of a suite, or with a part of a name; '' for all.

    Raises:
        ConfigError: no run tested one of the versions.
    """
    sides = {}
    for key, version in (("new", new), ("base", base)):
        lines = store.states.of_version(version) if version else []
        if version and not lines:
            raise ConfigError(
                "no ended run of a chain tested this version", key=key, found=version[:200],
                expected="a framework build, or at least 7 characters of a suite commit",
            )  # fmt: skip
        sides[key] = {(line.chain, line.mode, line.environment): line for line in lines}
    pairs = [
        _pair(sides["base"].get(key), sides["new"].get(key))
        for key in sorted(sides["base"].keys() | sides["new"].keys())
        if _is_wanted(key, suite, chain)
    ]
    bad = [pair.new.run for pair in pairs if pair.new and pair.new.status not in GREEN]
    reasons = {run_id: run.reason for run_id, run in store.runs.known(bad).items()}
    explained = [
        pair.model_copy(update={"reason": reasons[pair.new.run]}) if pair.new and pair.new.run in reasons else pair
        for pair in pairs
    ]
    return versions_of(base, new, explained)


def _is_wanted(key: _Key, suite: str, chain: str) -> bool:
    return suite in ("", ChainName.suite_of(key[0])) and chain.lower() in key[0].lower()


def _pair(base: "Line | None", new: "Line | None") -> Pair:
    line = new or base
    assert line is not None
    return Pair(
        kind=kind_of_pair(base.status if base else None, new.status if new else None),
        chain=line.chain,
        mode=line.mode,
        cluster=line.cluster,
        environment=line.environment,
        base=_side(base),
        new=_side(new),
    )


def _side(line: "Line | None") -> Side | None:
    return Side(run=line.run, status=line.status, started_at=line.created_at) if line else None

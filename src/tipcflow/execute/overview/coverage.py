"""Loads the overview of coverage."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.config.goldens import golden_names
from tipcflow.config.loader import load_yaml
from tipcflow.config.references import References
from tipcflow.domain import ConfigError, Status
from tipcflow.domain.run.names import ChainName
from tipcflow.execute.overview.declared import declared_chains
from tipcflow.execute.overview.frameworks import Clusters
from tipcflow.report.overview import coverage as report
from tipcflow.report.overview.today import DAY_S, GREEN

if TYPE_CHECKING:
    from tipcflow.store import Store
    from tipcflow.store.queries.coverage import LegCount
    from tipcflow.store.queries.states import Line

# Accepted runs that a comparison needs: `min_history` of the policies, unless one sets another number.
ENOUGH = 5
_IDLE = (Status.NOT_RUN, Status.BLOCKED)


@dataclass(frozen=True)
class _Evidence:
    """Everything that is known, by chain or by run."""

    declared: frozenset[str]
    quarantined: frozenset[str]
    lines: dict[str, list["Line"]]
    legs: dict[str, list["LegCount"]]
    oldest: float
    has_target: Callable[[str, str], bool]
    has_golden: Callable[[str, str], bool]
    no_framework: Callable[[str], tuple[str, ...]]


def load_coverage(
    store: "Store", config_dir: Path, *, days: float = 14, suite: str = "", now: float | None = None
) -> report.Coverage:
    """Return the coverage of all chains that are declared or have runs.

    Args:
        days: a chain whose newest run is older has the gap `not run lately`.
        suite: only chains of this suite; '' for all.
        now: seconds since the epoch; None for the database's clock.
    """
    now = store.now() if now is None else now
    lines = [line for line in store.states.lines() if suite in ("", line.suite)]
    declared = frozenset(
        chain for chain in declared_chains(config_dir) if suite in ("", ChainName.parse(chain).suite)
    )
    by_chain: dict[str, list[Line]] = {}
    for line in lines:
        by_chain.setdefault(line.chain, []).append(line)
    legs: dict[str, list[LegCount]] = {}
    for count in store.coverage.legs([line.run for line in lines]):
        legs.setdefault(count.run, []).append(count)
    targets, goldens = _Targets(config_dir), golden_names(config_dir)
    evidence = _Evidence(
        declared=declared,
        quarantined=frozenset(
            store.check_history.quarantined([line.run for line in lines if line.status in GREEN])
        ),
        lines=by_chain,
        legs=legs,
        oldest=now - days * DAY_S,
        has_target=targets.has,
        has_golden=lambda chain, mode: f"{chain}.{mode}" in goldens,
        no_framework=Clusters(config_dir).reasons,
    )
    chains = [_chain(evidence, name) for name in sorted({*declared, *by_chain})]
    passed = sum(report.Gap.NEVER_PASSED not in chain.gaps and chain.lines > 0 for chain in chains)
    made = report.make_coverage(chains, passed, at=now, days=days, problems=targets.problems)
    return made.model_copy(update={"selection": _selection(store, config_dir)})


def _selection(store: "Store", config_dir: Path) -> str:
    """The false-green rate of the selection; '' if no repository is configured."""
    if not any((config_dir / "repositories").glob("*.yaml")):
        return ""
    from tipcflow.execute.changes import false_green

    return false_green(store).line


def _chain(evidence: _Evidence, name: str) -> report.ChainCoverage:
    lines = evidence.lines.get(name, [])
    counts = [count for line in lines for count in evidence.legs.get(line.run, ())]
    not_run: dict[str, int] = {}
    for count in counts:
        if count.status is Status.NOT_RUN:
            not_run[count.reason] = not_run.get(count.reason, 0) + count.count
    newest = max(lines, key=lambda line: line.created_at, default=None)
    no_framework = _no_framework(evidence, name, lines)
    gaps = _gaps(evidence, name, lines, has_unrun_legs=bool(not_run), has_framework=not no_framework)
    return report.ChainCoverage(
        chain=name,
        suite=ChainName.parse(name).suite,
        declared=name in evidence.declared,
        lines=len(lines),
        passing=sum(line.status in GREEN and line.run not in evidence.quarantined for line in lines),
        legs=sum(count.count for count in counts),
        legs_ran=sum(count.count for count in counts if count.status not in _IDLE),
        legs_passed=sum(count.count for count in counts if count.status is Status.PASS),
        not_run=not_run,
        newest_run=newest.run if newest else "",
        newest_at=newest.created_at if newest else None,
        gaps=tuple(gaps),
        no_framework=no_framework,
    )


def _gaps(
    evidence: _Evidence, name: str, lines: Sequence["Line"], *, has_unrun_legs: bool, has_framework: bool
) -> list[report.Gap]:
    modes = sorted({line.mode for line in lines})
    target = any(evidence.has_target(name, mode) for mode in modes or [""])
    golden = any(evidence.has_golden(name, mode) for mode in modes)
    is_missing = {
        report.Gap.NO_FRAMEWORK: not has_framework,
        report.Gap.NEVER_RUN: not lines,
        report.Gap.NEVER_PASSED: bool(lines) and not any(line.accepted for line in lines),
        report.Gap.STALE: bool(lines) and max(line.created_at for line in lines) < evidence.oldest,
        report.Gap.NO_HISTORY: any(0 < line.accepted < ENOUGH for line in lines),
        report.Gap.NO_TARGET: not target,
        report.Gap.NO_GOLDEN: bool(lines) and not golden,
        report.Gap.LEGS: has_unrun_legs,
        report.Gap.UNDECLARED: name not in evidence.declared,
    }
    return [gap for gap, missing in is_missing.items() if missing]


def _no_framework(evidence: _Evidence, name: str, lines: Sequence["Line"]) -> tuple[str, ...]:
    """Return why no cluster can run a declared chain; empty if one can, or if it passes on a cluster elsewhere."""
    if name not in evidence.declared or any(line.status in GREEN for line in lines):
        return ()
    return evidence.no_framework(ChainName.parse(name).suite)


class _Targets:
    """Accuracy targets of suites, each file read once."""

    def __init__(self, config_dir: Path) -> None:
        self._folder = config_dir / "references"
        self._of = lru_cache(maxsize=None)(self._read)
        self.problems: list[str] = []

    def has(self, chain: str, mode: str) -> bool:
        """Whether the chain's model has a target in a mode; '' for any mode."""
        name = ChainName.parse(chain)
        references = self._of(name.suite)
        if references is None:
            return False
        return bool(references.of(name.model, mode, params=name.file))

    def _read(self, suite: str) -> References | None:
        path = self._folder / f"{suite}.yaml"
        if not path.is_file():
            return None
        try:
            return load_yaml(path, References)
        except ConfigError as error:
            self.problems.append(str(error))
            return None

"""Loads the overview of coverage."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.config.goldens import golden_names
from tipcflow.config.loader import load_yaml
from tipcflow.config.references import Reference, References
from tipcflow.domain import ConfigError, Status
from tipcflow.domain.run.names import ChainName
from tipcflow.execute.overview.declared import declared_chains, split_by_name
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
    has_target: Callable[[ChainName, str], bool]
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
    lines, unnamed = split_by_name(line for line in store.states.lines() if suite in ("", line.suite))
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
        no_framework=Clusters(store, config_dir).reasons,
    )
    chains = [_chain(evidence, name) for name in sorted({*declared, *by_chain})]
    passed = sum(report.Gap.NEVER_PASSED not in chain.gaps and chain.lines > 0 for chain in chains)
    made = report.make_coverage(chains, passed, at=now, days=days, problems=[*targets.problems, *unnamed])
    return made.model_copy(update={"selection": _selection(store, config_dir)})


def _selection(store: "Store", config_dir: Path) -> str:
    """The false-green rate of the selection; '' if no repository is configured."""
    if not any((config_dir / "repositories").glob("*.yaml")):
        return ""
    from tipcflow.execute.changes import false_green

    return false_green(store).line


def _chain(evidence: _Evidence, name: str) -> report.ChainCoverage:
    lines = evidence.lines.get(name, [])
    total = idle = passed = 0
    not_run: dict[str, int] = {}
    for line in lines:
        for _, status, reason, number in evidence.legs.get(line.run, ()):
            total += number
            if status is Status.PASS:
                passed += number
            elif status in _IDLE:
                idle += number
            if status is Status.NOT_RUN:
                not_run[reason] = not_run.get(reason, 0) + number
    newest = max(lines, key=attrgetter("created_at"), default=None)
    no_framework = _no_framework(evidence, name, lines)
    parsed = ChainName.parse(name)
    gaps = _gaps(
        evidence,
        name,
        lines,
        newest,
        has_framework=not no_framework,
        has_target=any(evidence.has_target(parsed, mode) for mode in {line.mode for line in lines} or {""}),
        has_unrun_legs=bool(not_run),
    )
    return report.ChainCoverage(
        chain=name,
        suite=parsed.suite,
        declared=name in evidence.declared,
        lines=len(lines),
        passing=sum([line.status in GREEN and line.run not in evidence.quarantined for line in lines]),
        legs=total,
        legs_ran=total - idle,
        legs_passed=passed,
        not_run=not_run,
        newest_run=newest.run if newest else "",
        newest_at=newest.created_at if newest else None,
        gaps=tuple(gaps),
        no_framework=no_framework,
    )


def _gaps(
    evidence: _Evidence,
    name: str,
    lines: Sequence["Line"],
    newest: "Line | None",
    *,
    has_framework: bool,
    has_target: bool,
    has_unrun_legs: bool,
) -> Iterator[report.Gap]:
    """Yield the gaps of a chain, worst first."""
    accepted = [line.accepted for line in lines]
    if not has_framework:
        yield report.Gap.NO_FRAMEWORK
    if newest is None:
        yield report.Gap.NEVER_RUN
    elif not any(accepted):
        yield report.Gap.NEVER_PASSED
    if newest is not None and newest.created_at < evidence.oldest:
        yield report.Gap.STALE
    if any(0 < number < ENOUGH for number in accepted):
        yield report.Gap.NO_HISTORY
    if not has_target:
        yield report.Gap.NO_TARGET
    if lines and not any(evidence.has_golden(name, line.mode) for line in lines):
        yield report.Gap.NO_GOLDEN
    if has_unrun_legs:
        yield report.Gap.LEGS
    if name not in evidence.declared:
        yield report.Gap.UNDECLARED


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

    def has(self, name: ChainName, mode: str) -> bool:
        """Whether the chain's model has a target in a mode; '' for any mode."""
        own = self._of(name.suite).get(name.model)
        return own is not None and bool(own.of(name.model, mode, params=name.file))

    def _read(self, suite: str) -> dict[str, References]:
        """Return model -> its references; without this, each chain would search those of all models."""
        path = self._folder / f"{suite}.yaml"
        if not path.is_file():
            return {}
        try:
            every = load_yaml(path, References)
        except ConfigError as error:
            self.problems.append(str(error))
            return {}
        by_model: dict[str, list[Reference]] = {}
        for reference in every.references:
            by_model.setdefault(reference.model, []).append(reference)
        return {model: every.model_copy(update={"references": tuple(own)}) for model, own in by_model.items()}

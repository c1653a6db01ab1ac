"""Today: how many chains pass on each framework build, what is new, what is known, what is running."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from tipcflow.domain import Run, Status
from tipcflow.domain.numbers.units import counted

DAY_S = 86_400.0
GREEN = frozenset({Status.PASS, Status.IMPROVEMENT})
# Kinds of problems, worst first: name -> statuses.
KINDS = {
    "broken": (Status.FAILED, Status.CONFIG_ERROR),
    "regression": (Status.REGRESSION, Status.UNCONFIRMED),
    "infrastructure": (Status.INFRA_FAILURE,),
}
_KIND = {status: kind for kind, statuses in KINDS.items() for status in statuses}
# Noun phrases of the sentence: for one chain, for several.
_PHRASES = {
    "regression": ("regression", "regressions"),
    "broken": ("broken", "broken"),
    "infrastructure": ("infrastructure failure", "infrastructure failures"),
}
UNKNOWN_BUILD = "an unknown framework build"


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True)


@dataclass(frozen=True, slots=True)
class State:
    """A chain in one mode and environment class, and its newest run with a verdict.

    Not a model, because pages create thousands of them.

    Attributes:
        quarantined: whether failures of that run are quarantined.
    """

    chain: str
    suite: str
    mode: str
    cluster: str
    environment: str
    framework: str
    status: Status
    run: str
    started_at: float
    quarantined: bool = False


class Problem(_Model):
    """A chain that does not pass.

    Attributes:
        is_new: whether its first bad run is within the period of new problems.
        last_good, last_good_at: the last green run before it; '' and None if it never passed.
        first_bad, first_bad_at: the first run since then with the same kind of problem.
        suspects: what changed between these two runs, as text.
    """

    chain: str
    mode: str
    cluster: str
    environment: str
    framework: str
    kind: str
    status: Status
    reason: str
    run: str
    started_at: float
    is_new: bool
    last_good: str = ""
    last_good_at: float | None = None
    first_bad: str
    first_bad_at: float
    suspects: tuple[str, ...] = ()


class Suspect(_Model):
    """A change that several new problems share."""

    change: str
    chains: tuple[str, ...]


class Build(_Model):
    """The chains whose newest run used one framework build.

    Attributes:
        quarantined: number of chains that pass only because failures are quarantined; not part of `passing`.
        newest_at: start of the newest of these runs.
        problems: kind -> number of chains; `new` counts those with a new problem.
    """

    framework: str
    chains: int
    passing: int
    quarantined: int = 0
    newest_at: float
    problems: dict[str, int]
    new: dict[str, int]
    sentence: str


class Running(_Model):
    """A run without a status.

    Attributes:
        started_at: start of its first step; None before it.
        waits: whether it waits for slots, or for an allocation by Slurm.
        expected_start_at: of a run that waits for slots by the expected ends of earlier runs, on Slurm that of
            Slurm; None for others.
        expected_end_at: by the median of the chain's newest complete runs; None without one.
    """

    run: str
    chain: str
    mode: str
    cluster: str
    trigger: str
    created_at: float
    started_at: float | None
    waits: bool
    expected_start_at: float | None = None
    expected_end_at: float | None


class Today(_Model):
    """Everything that the page and the command show.

    Attributes:
        at: time of the query; times are seconds since the epoch.
        days: age limit of a chain's newest run; older ones are counted in `stale` only.
        new_days: age limit of the first bad run of a new problem.
        quarantined: states that pass only because failures are quarantined.
        running_total: number of runs without a status, of which `running` lists the newest.
    """

    schema_version: int = 1
    at: float
    days: float
    new_days: float
    builds: tuple[Build, ...]
    problems: tuple[Problem, ...]
    shared: tuple[Suspect, ...]
    quarantined: tuple[State, ...] = ()
    stale: tuple[State, ...]
    running: tuple[Running, ...]
    running_total: int

    @property
    def new(self) -> tuple[Problem, ...]:
        """New problems, worst first."""
        return tuple(problem for problem in self.problems if problem.is_new)

    @property
    def known(self) -> tuple[Problem, ...]:
        """Other problems, worst first."""
        return tuple(problem for problem in self.problems if not problem.is_new)


def kind_of(status: Status) -> str:
    """Return the kind of problem of a status that is not green."""
    return _KIND[status]


def make_problem(
    state: State, run: Run, good: Run | None, first: Run, suspects: Sequence[str], since: float
) -> Problem:
    """Return the problem of a state that is not green.

    Args:
        run: its newest run.
        since: first bad runs from then on are new, seconds since the epoch.
    """
    return Problem(
        chain=state.chain,
        mode=state.mode,
        cluster=state.cluster,
        environment=state.environment,
        framework=state.framework,
        kind=kind_of(state.status),
        status=state.status,
        reason=run.reason,
        run=run.id,
        started_at=run.created_at,
        is_new=first.created_at >= since,
        last_good="" if good is None else good.id,
        last_good_at=None if good is None else good.created_at,
        first_bad=first.id,
        first_bad_at=first.created_at,
        suspects=tuple(suspects),
    )


def worst_first(problems: Sequence[Problem]) -> tuple[Problem, ...]:
    """Return problems by severity, the newest first bad run first, then by chain."""
    return tuple(
        sorted(
            problems, key=lambda each: (-each.status.severity, -each.first_bad_at, each.chain, each.environment)
        )
    )


def builds_of(states: Sequence[State], problems: Sequence[Problem]) -> tuple[Build, ...]:
    """Return the framework builds of the states, the one with the newest run first.

    A chain counts once per build: with its worst state if it ran in several modes or environments.
    """
    new = {(each.chain, each.mode, each.environment) for each in problems if each.is_new}
    by_build: dict[str, list[State]] = {}
    for state in states:
        by_build.setdefault(state.framework or UNKNOWN_BUILD, []).append(state)
    builds = [_build(framework, members, new) for framework, members in by_build.items()]
    return tuple(sorted(builds, key=lambda build: (-build.newest_at, build.framework)))


def _build(framework: str, states: Sequence[State], new: set[tuple[str, str, str]]) -> Build:
    worst: dict[str, State] = {}
    for state in states:
        if state.chain not in worst or _badness(state) > _badness(worst[state.chain]):
            worst[state.chain] = state
    bad = [state for state in worst.values() if state.status not in GREEN]
    problems = Counter(kind_of(state.status) for state in bad)
    fresh = Counter(kind_of(state.status) for state in bad if (state.chain, state.mode, state.environment) in new)
    quarantined = sum(state.status in GREEN and state.quarantined for state in worst.values())
    passing = len(worst) - len(bad) - quarantined
    return Build(
        framework=framework,
        chains=len(worst),
        passing=passing,
        quarantined=quarantined,
        newest_at=max([state.started_at for state in states]),
        problems={kind: problems[kind] for kind in KINDS if problems[kind]},
        new={kind: fresh[kind] for kind in KINDS if fresh[kind]},
        sentence=_sentence(framework, passing, len(worst), quarantined, problems, fresh),
    )


def _badness(state: State) -> tuple[int, bool]:
    return (0 if state.status in GREEN else state.status.severity, state.quarantined)


def _sentence(
    framework: str, passing: int, total: int, quarantined: int, problems: Counter[str], new: Counter[str]
) -> str:
    phrases = [f"{quarantined} quarantined"] if quarantined else []
    for kind, (singular, plural) in _PHRASES.items():
        if count := problems[kind]:
            word = singular if count == 1 else plural
            fresh = "" if not new[kind] else " (new)" if new[kind] == count == 1 else f" ({new[kind]} new)"
            phrases.append(f"{count} {word}{fresh}")
    head = f"{passing} of {counted(total, 'chain')} pass{'es' if total == 1 else ''} on {framework}"
    return f"{head}; {', '.join(phrases)}" if phrases else head


def shared_suspects(problems: Sequence[Problem]) -> tuple[Suspect, ...]:
    """Return the changes that at least two new problems share, the one with most chains first."""
    chains: dict[str, dict[str, None]] = {}
    for problem in problems:
        if problem.is_new and problem.kind != "infrastructure":
            for change in problem.suspects:
                chains.setdefault(change, {})[problem.chain] = None
    shared = [Suspect(change=change, chains=tuple(names)) for change, names in chains.items() if len(names) > 1]
    return tuple(sorted(shared, key=lambda suspect: (-len(suspect.chains), suspect.change)))

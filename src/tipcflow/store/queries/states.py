"""The state of each line: its newest run with a verdict, and the runs before it that explain it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    Select,
    and_,
    bindparam,
    case,
    func,
    or_,
    select,
)

from tipcflow.domain import Run, Status
from tipcflow.domain.triggers import SIDE_RUNS
from tipcflow.store.base import Part, among, clock
from tipcflow.store.leases.rows import waiting_since
from tipcflow.store.run.line_states import GREEN, is_state
from tipcflow.store.schema import attempts, line_states, runs

# Statuses of one kind of problem: the first run of the same kind began it.
KINDS = (
    (Status.REGRESSION, Status.UNCONFIRMED),
    (Status.FAILED, Status.CONFIG_ERROR),
    (Status.INFRA_FAILURE,),
)
_STATUS = {status.value: status for status in Status}
_KEY = ("chain", "mode", "environment")
# The first characters of a suite commit, the character after all digits in every collation, and the most runs of a
# version.
_IS_COMMIT, _AFTER, _MOST_RUNS = re.compile(r"[0-9a-f]{7,}(\+local)?"), "g", 20_000
# The newest complete runs, from which the duration of a chain is estimated.
_RECENT = 5


class Line(NamedTuple):
    """The state of a chain in one mode and environment class; a tuple, because pages create thousands of them.

    Attributes:
        run: id of the newest run with a verdict.
        environment: of the line, also if that run ended before its environment was known (`inherited`).
        accepted: number of accepted runs of the line; 0 for the runs of a version.
    """

    run: str
    chain: str
    suite: str
    mode: str
    cluster: str
    environment: str
    status: Status
    framework: str
    created_at: float
    accepted: int = 0
    inherited: bool = False


# The columns of a line, in the order of its fields.
_LINE = [runs.c.id, *(runs.c[name] for name in Line._fields[1:-2])]


@dataclass(frozen=True)
class Red:
    """A line that does not pass.

    Attributes:
        run: its newest run; good: the last green run before it; None without one.
        first: the first run since then with the same kind of problem.
    """

    line: Line
    run: Run
    good: Run | None
    first: Run


@dataclass(frozen=True)
class Active:
    """A run without a status.

    Attributes:
        started_at: start of its first step; None if none has started.
        waits: whether it waits for slots, or for an allocation by Slurm.
        usual_s: median seconds of the chain's newest complete runs, without the wait for slots; None without one.
    """

    run: Run
    started_at: float | None
    waits: bool
    usual_s: float | None


class States(Part):
    """Read-only queries; their cost depends on the number of lines, not on the number of runs or samples."""

    def lines(self) -> list[Line]:
        """Return the state of every line that has one."""
        with self._read() as connection:
            lines = [_line(row) for row in connection.execute(_STATES).all()]
        return _without_unknown(lines)

    def of_version(self, version: str) -> list[Line]:
        """Return the newest run of each line that tested a version, by chain and mode.

        Args:
            version: a framework build, or the first characters of a suite commit (at least 7).
        """
        tested = runs.c.framework == version
        if _IS_COMMIT.fullmatch(version):
            # A range, because LIKE ignores upper and lower case, which keeps databases from using it.
            # Other versions lack this condition, because with it no index of frameworks can be used.
            commits = and_(runs.c.suite_commit >= version, runs.c.suite_commit < f"{version}{_AFTER}")
            tested = or_(tested, commits)
        query = select(*_LINE).where(tested, *is_state(runs)).order_by(runs.c.created_at.desc()).limit(_MOST_RUNS)
        newest: dict[tuple[str, str, str], Any] = {}
        with self._read() as connection:
            for row in connection.execute(query).all():
                run, chain, _, mode, _, environment, *_, created_at = row
                known = newest.get(key := (chain, mode, environment))
                if known is None or (known[-1], known[0]) < (created_at, run):
                    newest[key] = row
        return [_line(row) for _, row in sorted(newest.items(), key=itemgetter(0))]

    def reds(self, lines: Iterable[Line]) -> list[Red]:
        """Return the runs that explain the lines that do not pass, in the order of the lines."""
        red = [line for line in lines if line.status not in GREEN]
        good: dict[str, str] = {}
        first: dict[str, list[str]] = {}
        with self._read() as connection:
            for kind in KINDS:
                if wanted := [line for line in red if line.status in kind]:
                    for run, green, *begun in connection.execute(_explaining(connection, wanted, kind)):
                        good[run], first[run] = green or "", [own for own in begun if own] or [run]
            ids = (
                {line.run for line in red}
                | set(good.values())
                | {run for begun in first.values() for run in begun}
            )
            known = self._runs(connection, sorted(ids - {""}))
        return [
            Red(
                line,
                known[line.run],
                known.get(good[line.run]),
                min((known[run] for run in first[line.run]), key=lambda run: (run.created_at, run.id)),
            )
            for line in red
        ]

    def active(self, limit: int) -> tuple[list[Active], int]:
        """Return the newest runs without a status, and the number of all of them."""
        query = select(runs).where(runs.c.status.is_(None)).order_by(runs.c.created_at.desc(), runs.c.id.desc())
        count = select(func.count()).select_from(runs).where(runs.c.status.is_(None))
        with self._read() as connection:
            total = int(connection.execute(count).scalar_one())
            rows = [_run(row) for row in connection.execute(query.limit(limit)).mappings()] if total else []
            ids = [run.id for run in rows]
            began = select(attempts.c.run, func.min(attempts.c.started_at)).where(attempts.c.run.in_(ids))
            started = {row[0]: float(row[1]) for row in connection.execute(began.group_by(attempts.c.run))}
            waits = waiting_since(connection, clock(connection)) if ids else {}
            usual = {
                key: self._usual_s(connection, *key)
                for key in dict.fromkeys((run.chain, run.mode, run.cluster) for run in rows)
            }
        return [
            Active(run, started.get(run.id), run.id in waits, usual[run.chain, run.mode, run.cluster])
            for run in rows
        ], total

    @staticmethod
    def _usual_s(connection: Any, chain: str, mode: str, cluster: str) -> float | None:
        spent = connection.execute(_SPENT, {"chain": chain, "mode": mode, "cluster": cluster}).scalars()
        seconds = sorted(float(value) for value in spent if value is not None)
        return seconds[len(seconds) // 2] if seconds else None

    @staticmethod
    def _runs(connection: Any, ids: Sequence[str]) -> dict[str, Run]:
        if not ids:
            return {}
        selected = connection.execute(select(runs).where(among(connection, runs.c.id, ids)))
        names = tuple(selected.keys())
        known = (Run.model_validate(dict(zip(names, row, strict=True))) for row in selected.all())
        return {run.id: run for run in known}


def _spent() -> Select[Any]:
    """Select the seconds of the newest complete runs of a `chain`, `mode` and `cluster`; NULL without a step."""
    names = ("chain", "mode", "cluster")
    complete = (
        select(runs.c.id, runs.c.ended_at)
        .where(*(runs.c[name] == bindparam(name) for name in names))
        .where(runs.c.status.in_((*GREEN, *KINDS[0])), runs.c.trigger.not_in(SIDE_RUNS))
        .order_by(runs.c.created_at.desc(), runs.c.id.desc())
        .limit(_RECENT)
        .subquery()
    )
    began = select(func.min(attempts.c.started_at)).where(attempts.c.run == complete.c.id).scalar_subquery()
    return select(complete.c.ended_at - began)


# Built at import: building them takes as long as executing them.
_ALIASES = {name: runs.alias(name) for name in ("newest", "green", "since", "known", "unknown")}
_STATES = select(*(line_states.c[name] for name in Line._fields[:-1])).order_by(
    *(line_states.c[name] for name in _KEY)
)
_SPENT = _spent()


def _without_unknown(lines: list[Line]) -> list[Line]:
    """Merge runs that ended before their environment was known into the line of their chain, mode and cluster."""
    if all(line.environment for line in lines):
        return lines
    by_place: dict[tuple[str, str, str], Line] = {}
    for line in lines:
        place = (line.chain, line.mode, line.cluster)
        before = by_place.get(place)
        if line.environment and (before is None or before.created_at < line.created_at):
            by_place[place] = line
    merged: dict[str, Line] = {}
    for line in lines:
        known = by_place.get((line.chain, line.mode, line.cluster))
        if line.environment:
            merged.setdefault(line.run, line)
        elif known is None:
            merged[line.run] = line
        elif line.created_at > known.created_at:
            framework = line.framework or known.framework
            merged[known.run] = line._replace(
                environment=known.environment, framework=framework, accepted=known.accepted, inherited=True
            )
    return list(merged.values())


def _explaining(connection: Connection, lines: Sequence[Line], kind: Sequence[Status]) -> Select[Any]:
    """Select (run, its last green run or NULL, ids or NULL of the first runs of that kind since then) of lines.

    The first run is searched twice, each time through an index: in the line, and in its cluster among the runs
    that ended before their environment was known.
    """
    newest, green, since = (_ALIASES[name] for name in ("newest", "green", "since"))
    environment = _environments(lines, newest)
    good = (
        select(green.c.id)
        .where(green.c.chain == newest.c.chain, green.c.mode == newest.c.mode)
        .where(green.c.environment == environment, green.c.status.in_(GREEN), *is_state(green))
        .order_by(green.c.created_at.desc(), green.c.id.desc())
        .limit(1)
    )
    line = (
        select(*(newest.c[name] for name in ("id", "chain", "mode", "cluster")))
        .add_columns(environment.label("environment"), good.scalar_subquery().label("good"))
        .where(among(connection, newest.c.id, [line.run for line in lines]))
        .subquery("line")
    )
    after = func.coalesce(select(since.c.created_at).where(since.c.id == line.c.good).scalar_subquery(), -1.0)
    first = []
    for place in ("known", "unknown"):
        own = _ALIASES[place]
        same = [own.c.chain == line.c.chain, own.c.mode == line.c.mode, own.c.created_at > after]
        if place == "known":
            same.append(own.c.environment == line.c.environment)
        else:
            same += [own.c.environment == "", own.c.cluster == line.c.cluster]
        query = select(own.c.id).where(*same, own.c.status.in_(kind), *is_state(own))
        first.append(query.order_by(own.c.created_at, own.c.id).limit(1).scalar_subquery())
    return select(line.c.id, line.c.good, *first)


def _environments(lines: Sequence[Line], newest: Any) -> Any:
    """Return the environment of each run's line, which the run itself may not know."""
    inherited = {line.run: line.environment for line in lines if line.inherited}
    return case(inherited, value=newest.c.id, else_=newest.c.environment) if inherited else newest.c.environment


def _run(row: Mapping[Any, Any]) -> Run:
    return Run.model_validate(dict(row))


def _line(row: Any) -> Line:
    """Return a line from its columns (`_LINE`), and the number of accepted runs where it was selected."""
    run, chain, suite, mode, cluster, environment, status, framework, created_at, *accepted = row
    return Line(run, chain, suite, mode, cluster, environment, _STATUS[status], framework, created_at, *accepted)

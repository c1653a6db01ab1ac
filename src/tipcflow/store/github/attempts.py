"""Attempts of commits on GitHub: one row is one run of the selected chains."""

from collections.abc import Collection, Sequence
from typing import Any

from sqlalchemy import RowMapping, delete, insert, select, update
from sqlalchemy.exc import IntegrityError

from tipcflow.domain import Frozen
from tipcflow.store.base import Part, clock
from tipcflow.store.github.decision import AttemptDecision
from tipcflow.store.schema import approvals, pull_attempts

# Nothing runs; a later request may start this attempt.
HELD = "held"
SKIPPED = "skipped"
# Chains are to be selected and started; an interrupted start is repeated.
NEW = "new"
RUNNING = "running"
DONE = "done"
UNCONCERNED = "unconcerned"
_WAITING = (HELD, SKIPPED)
# Name of the row that reports why no chain could be selected; names of chains have slashes.
SELECTION = "selection"
_LIVING = (NEW, RUNNING)


class StartedChain(Frozen):
    """One chain of an attempt.

    Attributes:
        selected: why it was selected.
        dag_id, run_id: its DAG run; `run` is the id of its run in this database.
        problem: why it could not be started, '' if it was; `status` is then its status.
        file, lines: its params file in the repository, and key -> line.
        drop: legs (`step/leg`) that the budget drops.
        predicted_s: predicted seconds of its steps; 0 without a prediction.
    """

    chain: str
    selected: str = ""
    dag_id: str = ""
    run_id: str = ""
    run: str = ""
    problem: str = ""
    status: str = ""
    file: str = ""
    lines: dict[str, int] = {}
    drop: tuple[str, ...] = ()
    predicted_s: float = 0.0


class PullAttempt(Frozen):
    """One attempt of a commit.

    Attributes:
        number: pull request; 0 for pushes and merge groups.
        request: its origin; '' for an attempt that waits.
        body: the decision, and facts that the start recorded.
        cancel: why it is cancelled; '' if it is not.
        observed: what the last report showed.
        ended_at: None while something may still run or start.
    """

    repository: str
    number: int
    head_sha: str
    attempt: int
    request: str = ""
    state: str = NEW
    body: AttemptDecision = AttemptDecision()
    chains: tuple[StartedChain, ...] = ()
    cancel: str = ""
    observed: str = ""
    created_at: float = 0.0
    ended_at: float | None = None

    @property
    def key(self) -> tuple[str, int, str, int]:
        """The key of the row."""
        return self.repository, self.number, self.head_sha, self.attempt


class PullAttempts(Part):
    """Tables pull_attempts and approvals."""

    def add(self, attempt: PullAttempt) -> bool:
        """Add an attempt, or start one that was held or skipped; False if this attempt or request exists.

        The key and the request are unique, so equal events of several processes add one row.
        """
        try:
            with self._write() as connection:
                now = clock(connection)
                conditions = _conditions(attempt.key)
                old = (
                    connection.execute(select(pull_attempts).where(*conditions).with_for_update())
                    .mappings()
                    .first()
                )
                row = attempt.model_dump(exclude={"body", "chains"}) | {"created_at": now, "observed": ""}
                row |= {"body": attempt.body.stored(), "chains": list(attempt.chains)}
                row["ended_at"] = now if attempt.state in _WAITING else None
                if old is None:
                    connection.execute(insert(pull_attempts), row)
                    return True
                if old["state"] not in _WAITING:
                    return False
                connection.execute(update(pull_attempts).where(*conditions).values(row))
                return True
        except IntegrityError:
            return False

    def of(self, repository: str, number: int, *, head_sha: str = "") -> list[PullAttempt]:
        """Return the attempts of a pull request, oldest first."""
        query = select(pull_attempts).where(
            pull_attempts.c.repository == repository, pull_attempts.c.number == number
        )
        if head_sha:
            query = query.where(pull_attempts.c.head_sha == head_sha)
        with self._read() as connection:
            rows = connection.execute(query.order_by(pull_attempts.c.created_at, pull_attempts.c.attempt))
            return [_attempt(row) for row in rows.mappings()]

    def newest(
        self, *, repository: str = "", number: int | None = None, head_sha: str = "", limit: int = 50
    ) -> list[PullAttempt]:
        """Return the newest attempts, newest first.

        Args:
            repository: '' for all.
            number: of a pull request, 0 for pushes and merge groups; None for all.
            head_sha: of a commit; '' for all.
        """
        query = select(pull_attempts)
        if repository:
            query = query.where(pull_attempts.c.repository == repository)
        if number is not None:
            query = query.where(pull_attempts.c.number == number)
        if head_sha:
            query = query.where(pull_attempts.c.head_sha == head_sha)
        order = (pull_attempts.c.created_at.desc(), pull_attempts.c.attempt.desc())
        with self._read() as connection:
            return [_attempt(row) for row in connection.execute(query.order_by(*order).limit(limit)).mappings()]

    def get(self, key: tuple[str, int, str, int]) -> PullAttempt | None:
        """Return one attempt, None if there is none."""
        with self._read() as connection:
            row = connection.execute(select(pull_attempts).where(*_conditions(key))).mappings().first()
            return None if row is None else _attempt(row)

    def living(self) -> list[PullAttempt]:
        """Return the attempts that are starting or running, oldest first."""
        query = select(pull_attempts).where(pull_attempts.c.ended_at.is_(None))
        order = (pull_attempts.c.created_at, pull_attempts.c.number, pull_attempts.c.attempt)
        with self._read() as connection:
            return [_attempt(row) for row in connection.execute(query.order_by(*order)).mappings()]

    def predictions(self, chain: str, *, limit: int = 5) -> list[StartedChain]:
        """Return the newest predicted runs of a chain, newest first, of the last 200 ended attempts."""
        query = select(pull_attempts).where(pull_attempts.c.ended_at.is_not(None))
        with self._read() as connection:
            rows = connection.execute(query.order_by(pull_attempts.c.created_at.desc()).limit(200)).mappings()
            chains = [
                started
                for row in rows
                for started in _attempt(row).chains
                if started.chain == chain and started.predicted_s
            ]
        return chains[:limit]

    def unreported(self) -> list[PullAttempt]:
        """Return ended attempts whose final report is not written yet."""
        query = select(pull_attempts).where(pull_attempts.c.ended_at.is_not(None), pull_attempts.c.observed == "")
        with self._read() as connection:
            rows = connection.execute(query.order_by(pull_attempts.c.created_at)).mappings()
            return [_attempt(row) for row in rows]

    def cancel(self, repository: str, number: int, reason: str, *, but: str | None = None) -> int:
        """Mark the living attempts of a pull request as cancelled; return their number.

        Args:
            but: head commit whose attempts continue; None for none.
        """
        if number < 1:
            raise ValueError("only attempts of pull requests are cancelled")
        which = [
            pull_attempts.c.repository == repository,
            pull_attempts.c.number == number,
            pull_attempts.c.state.in_(_LIVING),
            pull_attempts.c.cancel == "",
        ]
        if but is not None:
            which.append(pull_attempts.c.head_sha != but)
        with self._write() as connection:
            return connection.execute(update(pull_attempts).where(*which).values(cancel=reason)).rowcount

    def started(
        self, attempt: PullAttempt, chains: Sequence[StartedChain], body: AttemptDecision, *, state: str
    ) -> None:
        """Record the chains of an attempt, and whether they all were started."""
        values: dict[str, Any] = {"chains": list(chains), "body": body.stored(), "state": state, "observed": ""}
        with self._write() as connection:
            if state not in _LIVING:
                values["ended_at"] = clock(connection)
            connection.execute(update(pull_attempts).where(*_conditions(attempt.key)).values(values))

    def saw(self, attempt: PullAttempt, observed: str, *, ended: bool) -> None:
        """Record what the report shows; with `ended` the attempt is over."""
        with self._write() as connection:
            values: dict[str, Any] = {"observed": observed}
            if ended and attempt.ended_at is None:
                values |= {"state": DONE, "ended_at": clock(connection)}
            connection.execute(update(pull_attempts).where(*_conditions(attempt.key)).values(values))

    def approve(self, repository: str, number: int, head_sha: str, who: str) -> bool:
        """Record the approval of one commit; False if it has one."""
        try:
            with self._write() as connection:
                row = {"repository": repository, "number": number, "head_sha": head_sha, "who": who}
                connection.execute(insert(approvals), row | {"approved_at": clock(connection)})
                return True
        except IntegrityError:
            return False

    def approved(self, repository: str, number: int) -> frozenset[str]:
        """Return the approved commits of a pull request."""
        query = select(approvals.c.head_sha).where(
            approvals.c.repository == repository, approvals.c.number == number
        )
        with self._read() as connection:
            return frozenset(connection.execute(query).scalars())

    def forget(self, days: float) -> int:
        """Remove attempts that ended more than `days` ago; return their number."""
        with self._write() as connection:
            old = pull_attempts.c.ended_at < clock(connection) - days * 86400
            return connection.execute(delete(pull_attempts).where(old)).rowcount


def _conditions(key: Collection[Any]) -> list[Any]:
    names = ("repository", "number", "head_sha", "attempt")
    return [pull_attempts.c[name] == value for name, value in zip(names, key, strict=True)]


def _attempt(row: RowMapping) -> PullAttempt:
    return PullAttempt(**{name: row[name] for name in PullAttempt.model_fields})

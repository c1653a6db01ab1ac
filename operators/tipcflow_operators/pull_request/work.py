"""One pass over all work; every part may be repeated."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tipcflow.config.repository import Repositories, Repository
from tipcflow.domain import TipcflowError
from tipcflow.domain.masking import mask
from tipcflow.domain.numbers.units import rough
from tipcflow.execute.overview.alerts import search_of
from tipcflow.github.flow import deliver, handle, living_comparisons, report, write_issues
from tipcflow.github.flow.waiting import changed, due
from tipcflow.store import Store
from tipcflow.store.github.attempts import NEW, RUNNING, PullAttempt
from tipcflow_operators.pull_request.accept import accept
from tipcflow_operators.pull_request.compare import advance_comparison, refuse_comparison
from tipcflow_operators.pull_request.start import Runs, close_lost, put_off, start_attempt, stop_attempt

_LOG = logging.getLogger(__name__)


@dataclass
class Work:
    """What a pass needs.

    Attributes:
        clients: repository -> client of GitHub.
        site: address of Airflow's UI.
        report: receives one line per action.
        owner: this process, for the outbox.
    """

    store: Store
    repositories: Repositories
    clients: Callable[[Repository], Any]
    runs: Runs
    config_dir: Path
    cache: Path
    site: str
    report: Callable[[str], None]
    owner: str = ""
    counts: dict[str, int] = field(default_factory=dict)

    def once(self) -> dict[str, int]:
        """Handle deliveries, stop and start runs, write and send reports; returns numbers of actions.

        Reports are sent before the chains are selected, because fetching a suite may take minutes.
        """
        self._deliveries()
        self._stops()
        self._reports()
        self.issues()
        self._send()
        self._starts()
        self._comparisons()
        self._reports()
        self._send()
        return self.counts

    def _deliveries(self) -> None:
        for row in self.store.outbox.take(self.owner):
            outcome, done = handle(row, self.store, self.repositories, self.clients, partial(accept, self.store))
            self._count("deliveries" if done else "postponed deliveries")
            self.report(f"delivery {row.delivery} ({row.event}, {row.repository}): {outcome}")

    def _stops(self) -> None:
        now = self.store.now()
        for attempt in self.store.pulls.living():
            if attempt.state != NEW and attempt.cancel and not attempt.body.stopped and due(attempt, now):
                self._count("stops")
                with self._isolated(attempt, state=RUNNING):
                    self.report(f"{_name(attempt)}: {stop_attempt(attempt, self.store, self.runs)}")

    def _starts(self) -> None:
        for waiting in self.store.pulls.living():
            if waiting.state != NEW:
                continue
            # A start may take minutes: a newer push stops its older runs, and a command gets its reaction, before.
            self._respond()
            attempt = self.store.pulls.get(waiting.key)
            repository = self._repository(waiting)
            if attempt is None or attempt.state != NEW or repository is None:
                continue
            if not (attempt.cancel or due(attempt, self.store.now())):
                continue
            self._count("starts")
            with self._isolated(attempt, state=NEW):
                done = start_attempt(
                    attempt,
                    repository,
                    self.store,
                    self.runs,
                    partial(self.clients, repository),
                    config_dir=self.config_dir,
                    cache=self.cache,
                )
                self.report(f"{_name(attempt)}: {done}")
        self._stops()

    def _respond(self) -> None:
        """Handle deliveries that arrived since, as far as that is a matter of seconds."""
        if self.store.outbox.ready():
            self._deliveries()
            self._stops()
            self._send()

    def _comparisons(self) -> None:
        """Start, observe and stop A/B comparisons; an unexpected error of one does not stop the others."""
        for name, body in living_comparisons(self.store):
            repository = next((known for known in self.repositories if known.name == name), None)
            if repository is None or body.retry_at > self.store.now():
                continue
            try:
                done = advance_comparison(
                    body, repository, self.store, self.runs, config_dir=self.config_dir, cache=self.cache
                )
            except TipcflowError:
                raise
            except Exception as error:
                _LOG.exception("comparison of %s #%d", name, body.number)
                done = f"internal error: {mask(repr(error))}"
                refuse_comparison(body, repository, self.store, done)
            self.report(f"{name} #{body.number} comparison of {body.head_sha[:8]}: {done}")
            self._count("comparisons")

    def _reports(self) -> None:
        for attempt in self.store.pulls.living():
            if attempt.state != NEW:
                close_lost(attempt, self.store, self.runs)
        for attempt in (*self.store.pulls.unreported(), *self.store.pulls.living()):
            repository = self._repository(attempt)
            if repository is None:
                # Nothing can be shown any more, and nothing may wait for it.
                self.store.pulls.saw(attempt, "the repository is no longer configured", ended=True)
            elif attempt.ended_at is not None or changed(self.store, attempt):
                report(self.store, attempt, repository, site=self.site)

    def issues(self) -> None:
        """Write the issues about alerts; an unexpected error of one repository does not stop the others."""
        for repository in self.repositories:
            try:
                written = write_issues(
                    self.store, repository, site=self.site, search=partial(search_of, self.store)
                )
            except TipcflowError:
                raise
            except Exception as error:
                _LOG.exception("issues of %s", repository.name)
                self.report(f"issues of {repository.name}: internal error: {mask(repr(error))}")
            else:
                self._count("issues", written)

    def _send(self) -> None:
        delivered = deliver(self.store, self.repositories, self.clients)
        self._count("messages", delivered.sent)
        if delivered.failed:
            self._count("failed messages", delivered.failed)
        for name, wait in delivered.paused.items():
            self.report(f"{name}: GitHub cannot be updated now, next attempt in {rough(wait)}")

    @contextmanager
    def _isolated(self, attempt: PullAttempt, *, state: str) -> Iterator[None]:
        """An unexpected error of one attempt must not stop the others: it is logged, and the attempt waits.

        After `GIVE_UP_S` the attempt ends as an infra_failure.
        """
        try:
            yield
        except TipcflowError:
            raise
        except Exception as error:
            _LOG.exception("%s", _name(attempt))
            self.report(f"{_name(attempt)}: internal error: {mask(repr(error))}")
            put_off(attempt, self.store, f"internal error: {mask(repr(error))}", state=state)

    def _repository(self, attempt: PullAttempt) -> Repository | None:
        return next(
            (repository for repository in self.repositories if repository.name == attempt.repository), None
        )

    def _count(self, what: str, number: int = 1) -> None:
        if number:
            self.counts[what] = self.counts.get(what, 0) + number


def _name(attempt: PullAttempt) -> str:
    number = f"#{attempt.number}" if attempt.number else "push"
    return f"{attempt.repository} {number} {attempt.head_sha[:8]} attempt {attempt.attempt}"

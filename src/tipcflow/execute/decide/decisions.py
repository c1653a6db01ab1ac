"""Decisions of users as values: what is decided, a check of it, and what it stores."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, StringConstraints, ValidationError

from tipcflow.config.loader import message_and_expected
from tipcflow.domain import ConfigError
from tipcflow.domain.alert.entry import OPEN_STATES, AlertState
from tipcflow.domain.base import Frozen
from tipcflow.execute.alerts.decide import alerts_named, assign, comment, refuse_same_state, set_state
from tipcflow.execute.decide.baselines import BaselineKind, decision_line, draft_baselines
from tipcflow.execute.decide.quarantines import active_quarantine, end_of, release_quarantine
from tipcflow.execute.quarantine.add import Request, draft_quarantine, find_failure
from tipcflow.execute.verdict.judge import policy_of
from tipcflow.store import Baseline

if TYPE_CHECKING:
    from tipcflow.config.automation.rules import QuarantineRule
    from tipcflow.domain import Run
    from tipcflow.store import Store

# Of a reason, in characters.
LONGEST = 1000
_Word = Annotated[str, StringConstraints(strip_whitespace=True, max_length=200)]
_Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=LONGEST)]
_Given = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
_Reason = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST)]
_Number = Annotated[int, Field(ge=1, le=2**31 - 1)]


class Decision(Frozen):
    """A decision of a user."""

    @abstractmethod
    def check(self, store: "Store", config_dir: Path) -> None:
        """Check everything that is known before it is stored; writes nothing.

        Raises:
            ConfigError: it cannot be stored.
        """

    @abstractmethod
    def apply(self, store: "Store", who: str, config_dir: Path) -> str:
        """Store it; return a sentence about it.

        Raises:
            ConfigError: it cannot be stored; nothing was stored.
        """


class AlertDecision(Decision):
    """A state, an owner or a comment for an alert.

    Attributes:
        state: the new one; None keeps it, and the reason becomes a comment.
        owner: '' keeps it.
        why: required for a state that closes the alert.
        group: also for the other alerts with the same cause.
    """

    number: _Number
    state: AlertState | None = None
    owner: _Word = ""
    why: _Text = ""
    group: bool = False

    def check(self, store: "Store", config_dir: Path) -> None:
        """Check the number, and that something changes."""
        if self.state is None and not self.owner and not self.why:
            raise ConfigError("nothing is decided", key="state", expected="a state, an owner or a comment")
        if self.state is not None and self.state not in OPEN_STATES and not self.why:
            raise ConfigError("is empty", key="why", expected=f"a reason for the state {self.state.value}")
        alerts = alerts_named(store, self.number, group=self.group)
        if self.state is not None:
            refuse_same_state(alerts, self.state, self.owner)

    def apply(self, store: "Store", who: str, config_dir: Path) -> str:
        """Store it in the history of the alerts."""
        self.check(store, config_dir)
        alerts = alerts_named(store, self.number, group=self.group)
        if self.state is not None:
            alerts = set_state(store, alerts, self.state, who=who, why=self.why, owner=self.owner)
        elif self.owner:
            alerts = assign(store, alerts, self.owner, who=who)
        if self.state is None and self.why:
            comment(store, alerts, self.why, who=who)
        numbers = ", ".join(str(alert.number) for alert in alerts)
        owner = f", owner {alerts[0].owner}" if alerts[0].owner else ""
        return f"alert {numbers}: {alerts[0].state.value}{owner}"


class BaselineDecision(Decision):
    """Accept, pin or reset the baselines of a run's metrics.

    Attributes:
        metrics: all comparable ones if empty.
        step: '' for all steps.
    """

    run: _Given
    kind: BaselineKind
    why: _Reason
    metrics: tuple[_Given, ...] = ()
    step: _Word = ""

    def check(self, store: "Store", config_dir: Path) -> None:
        """Check that the run has ended and has the metrics."""
        self._drafts(store, "")

    def apply(self, store: "Store", who: str, config_dir: Path) -> str:
        """Store one decision per metric."""
        made = self._drafts(store, who)
        store.baselines.accept(made)
        return decision_line(made)

    def _drafts(self, store: "Store", who: str) -> list[Baseline]:
        run = store.runs.get(self.run)
        return draft_baselines(store, run, self.kind, who=who, why=self.why, metrics=self.metrics, step=self.step)


class QuarantineDecision(Decision):
    """A quarantine of a failure of a run.

    Attributes:
        check_name: the check; step, leg and metric are '' if the check has one red result.
        owner: user or team that fixes the failure.
        until: a date, '' for half of the policy's maximum.
    """

    run: _Given
    check_name: _Given
    owner: _Given
    why: _Reason
    step: _Word = ""
    leg: _Word = ""
    metric: _Word = ""
    until: _Word = ""

    def check(self, store: "Store", config_dir: Path) -> None:
        """Check that the run has such a failure, and the end."""
        run, rule = self._failed_run(store, config_dir)
        draft_quarantine(store, run, self._request(""), rule)

    def apply(self, store: "Store", who: str, config_dir: Path) -> str:
        """Store it, within the limits of the policy."""
        run, rule = self._failed_run(store, config_dir)
        draft = draft_quarantine(store, run, self._request(who), rule)
        made = store.quarantines.add(draft, per_day=rule.per_day)
        return f"{made.label}: {made.about} of {made.chain} in {made.mode}"

    def _failed_run(self, store: "Store", config_dir: Path) -> "tuple[Run, QuarantineRule]":
        run = store.runs.get(self.run)
        run = find_failure(store, run.chain, self.check_name, run.id)
        return run, policy_of(store, run, "", config_dir).quarantine

    def _request(self, who: str) -> Request:
        return Request(
            check=self.check_name,
            owner=self.owner,
            who=who,
            why=self.why,
            step=self.step,
            leg=self.leg,
            metric=self.metric,
            expires_at=end_of(self.until),
        )


class ReleaseDecision(Decision):
    """The end of a quarantine."""

    number: _Number
    why: _Reason

    def check(self, store: "Store", config_dir: Path) -> None:
        """Check that the quarantine is active."""
        active_quarantine(store, self.number)

    def apply(self, store: "Store", who: str, config_dir: Path) -> str:
        """End it."""
        ended = release_quarantine(store, self.number, who=who, why=self.why)
        return f"released: quarantine {self.number}, {ended.about} of {ended.chain} in {ended.mode}"


def read_decision(dag_id: str, given: Mapping[str, object]) -> Decision:
    """Return the decision of a form or of a DAG run.

    Args:
        dag_id: a key of DECISION_DAGS.
        given: the values by field.

    Raises:
        ConfigError: an unknown field, or an invalid value.
    """
    try:
        return KINDS[dag_id].model_validate(dict(given))
    except ValidationError as error:
        first = error.errors()[0]
        message, expected = message_and_expected(first)
        key = ".".join(str(part) for part in first["loc"])
        shown = "" if first["type"] == "missing" else str(first.get("input"))[:80]
        raise ConfigError(message, key=key, found=shown, expected=expected) from error


def field_of(key: str) -> str:
    """Return the field for the key of an error that the CLI shares."""
    return _FIELDS.get(key, key)


# By the DAG that stores them, as in DECISION_DAGS.
KINDS: dict[str, type[Decision]] = {
    "decide_alert": AlertDecision,
    "decide_baseline": BaselineDecision,
    "decide_quarantine": QuarantineDecision,
    "decide_release": ReleaseDecision,
}
# Keys of errors that the CLI shares -> fields.
_FIELDS = {
    "STATE": "state",
    "CHECK": "check_name",
    "NUMBER": "number",
    "--because": "why",
    "--owner": "owner",
    "--until": "until",
    "--run": "run",
}

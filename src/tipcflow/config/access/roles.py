"""Roles of users, and the actions of tipcflow's own pages that each may do (docs/adr/0043)."""

from enum import StrEnum


class Role(StrEnum):
    """What a user may do; a user may have several roles."""

    VIEWER = "viewer"
    CI = "ci"
    OPERATOR = "operator"
    APPROVER = "approver"
    ADMIN = "admin"


class Action(StrEnum):
    """An action of tipcflow's own pages and API that changes something."""

    STOP_OWN = "stop own runs"
    STOP = "stop runs"
    ALERTS = "alerts"
    BASELINES = "baselines"
    QUARANTINES = "quarantines"

    @property
    def resource(self) -> str:
        """Its name among the resources of Airflow's auth manager."""
        return f"Certification: {self.value}"


# Decisions change what later verdicts mean, so they are not part of operating the deployment.
DECISIONS = frozenset({Action.BASELINES, Action.QUARANTINES})
ACTIONS: dict[Role, frozenset[Action]] = {
    Role.VIEWER: frozenset(),
    Role.CI: frozenset({Action.STOP_OWN}),
    Role.OPERATOR: frozenset({Action.STOP_OWN, Action.STOP, Action.ALERTS}),
    Role.APPROVER: DECISIONS | {Action.ALERTS},
    Role.ADMIN: frozenset(Action),
}
# DAG that stores a decision of a user -> the action that the user's role must allow.
DECISION_DAGS = {
    "decide_alert": Action.ALERTS,
    "decide_baseline": Action.BASELINES,
    "decide_quarantine": Action.QUARANTINES,
    "decide_release": Action.QUARANTINES,
}

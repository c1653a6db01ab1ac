"""Decisions of users about alerts: state, owner, comment."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tipcflow.domain import ConfigError
from tipcflow.domain.alert.entry import Alert, AlertEvent, AlertState, EventKind

if TYPE_CHECKING:
    from tipcflow.store import Store


def alerts_named(store: "Store", number: int, *, group: bool) -> list[Alert]:
    """Return the alert with a number, or all alerts of its group that are open or present, that one first.

    Raises:
        ConfigError: there is none with that number.
    """
    alert = store.tracked_alerts.get(number)
    if not group:
        return [alert]
    others = [
        each
        for each in store.tracked_alerts.of_group(alert.group)
        if each.number != number and (each.is_open or each.is_present)
    ]
    return [alert, *others]


def set_state(
    store: "Store", alerts: Sequence[Alert], state: AlertState, *, who: str, why: str, owner: str = ""
) -> list[Alert]:
    """Store a state, and an owner if one is given; return the changed alerts.

    Raises:
        ConfigError: an alert has this state (and this owner); nothing is stored then.
    """
    refuse_same_state(alerts, state, owner)
    changed = []
    for alert in alerts:
        now = store.now()
        text = f"{state.value}: {why}" if why else state.value
        event = AlertEvent(alert=alert.number, at=now, who=who, kind=EventKind.STATE, text=text)
        new = store.tracked_alerts.change(event, state=state, state_at=now)
        changed += assign(store, [new], owner, who=who) if owner and owner != new.owner else [new]
    return changed


def refuse_same_state(alerts: Sequence[Alert], state: AlertState, owner: str = "") -> None:
    """Refuse a state, and an owner if one is given, that an alert has.

    Raises:
        ConfigError: naming the alert.
    """
    for alert in alerts:
        if alert.state is state and owner in ("", alert.owner):
            raise ConfigError(
                f"alert {alert.number} has this state",
                key="STATE",
                found=state.value,
                expected="another state",
                hint=f"`tipcflow alerts comment {alert.number} '…'` adds a comment",
            )


def assign(store: "Store", alerts: Sequence[Alert], owner: str, *, who: str) -> list[Alert]:
    """Store an owner; return the changed alerts."""
    event = AlertEvent(alert=0, at=store.now(), who=who, kind=EventKind.OWNER, text=owner)
    events = [event.model_copy(update={"alert": alert.number}) for alert in alerts]
    return [store.tracked_alerts.change(each, owner=owner) for each in events]


def comment(store: "Store", alerts: Sequence[Alert], text: str, *, who: str) -> None:
    """Add a comment to the history of alerts."""
    for alert in alerts:
        event = AlertEvent(alert=alert.number, at=store.now(), who=who, kind=EventKind.COMMENT, text=text)
        store.tracked_alerts.change(event)

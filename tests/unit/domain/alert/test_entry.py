"""An alert: its open states, its level, and its metrics in words."""

import pytest

from tipcflow.domain.alert.entry import MEANINGS, OPEN_STATES, Alert, AlertState, Moved


def moved(name: str, ratio: float | None) -> Moved:
    return Moved(check=f"speed.{name}", step="v/train", metric=name, ratio=ratio, first="r1")


def alert(*metrics: Moved, **fields: object) -> Alert:
    known = {
        "chain": "s/a/train",
        "suite": "s",
        "mode": "lite",
        "environment": "cpu",
        "first": "r1",
        "newest": "r1",
    }
    times = {"state_at": 1.0, "first_at": 1.0, "newest_at": 1.0}
    return Alert.model_validate({**known, **times, "metrics": metrics, **fields})


def test_summary_of_an_alert_lists_three_metrics() -> None:
    four = [moved("batch_cost", 1.123), moved("ips", 0.8), moved("loss", None), moved("peak_rss", 2.0)]
    assert alert(*four).about == "batch_cost +12.3 %, ips -20.0 %, loss and 1 more"
    assert alert(*four[:3]).about == "batch_cost +12.3 %, ips -20.0 %, loss"
    assert alert(*four).has(("v/train", "", "ips"))
    assert not alert(*four).has(("v/eval", "", "ips"))


@pytest.mark.parametrize("state", list(AlertState))
def test_every_alert_state_has_a_meaning(state: AlertState) -> None:
    made = alert(moved("ips", 0.8), state=state)
    assert made.is_open is (state in OPEN_STATES)
    assert MEANINGS[state]
    assert made.is_present
    assert not alert(moved("ips", 0.8), state=state, gone="r2", gone_at=2.0).is_present

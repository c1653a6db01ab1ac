"""Alerts by cause, open ones first, and as CSV."""

from tests.unit.domain.alert.test_entry import alert, moved

from tipcflow.domain.alert.entry import Alert, AlertState
from tipcflow.report.overview.alerts import make_alerts, states_of
from tipcflow.report.overview.text import csv_of


def numbered(number: int, group: int, *suspects: str, **fields: object) -> Alert:
    known = {"number": number, "group": group, "suspects": suspects, "chain": f"s/{number}/train"}
    return alert(moved("ips", 0.8), **{"newest_at": float(number), **known, **fields})


def test_titles_of_groups_name_the_shared_cause() -> None:
    listed = [
        numbered(4, 4, state=AlertState.FIXED, gone="r9", gone_at=9.0),
        numbered(3, 1, "framework 1 -> 2", "node a -> b", state=AlertState.ACKNOWLEDGED),
        numbered(2, 2, "suite c -> d", owner="mia"),
        numbered(1, 1, "framework 1 -> 2"),
    ]
    made = make_alerts(listed, at=10.0)
    assert [(group.number, group.title) for group in made.groups] == [
        (1, "framework 1 -> 2"),
        (2, "suite c -> d"),
        (4, "no known change"),
    ]
    assert made.sentence == "4 alerts of 4 chains with 3 causes: 2 new, 1 acknowledged, 1 fixed"
    assert [row.number for row in made.rows] == [3, 1, 2, 4]
    lines = csv_of(made).splitlines()
    assert lines[0].startswith("number,group,state,owner,chain,suite,mode,environment,about,suspects,first,")
    assert lines[1].startswith(
        "3,1,acknowledged,,s/3/train,s,lite,cpu,ips -20.0 %,framework 1 -> 2; node a -> b,r1,"
    )
    assert make_alerts([], at=1.0).sentence == "no alerts"
    assert make_alerts(listed[3:], at=1.0).sentence == "1 alert of 1 chain with 1 cause: 1 new"


def test_alert_filters_select_states() -> None:
    assert states_of("open") == (AlertState.NEW, AlertState.ACKNOWLEDGED)
    assert states_of("all") == tuple(AlertState)
    assert states_of("fixed") == (AlertState.FIXED,)

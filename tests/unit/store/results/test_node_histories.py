"""Reports on the speed of nodes: the newest per cluster and period."""

from tipcflow.store import Store


def test_a_report_replaces_the_previous_of_its_cluster_and_period(store: Store) -> None:
    histories = store.node_histories
    histories.put("", 90.0, 1000.0, {"at": 1000.0})
    histories.put("fleet", 90.0, 1000.0, {"at": 1000.5})
    histories.put("", 90.0, 2000.0, {"at": 2000.0})
    assert histories.get("", 90.0, since=0) == {"at": 2000.0}
    assert histories.get("fleet", 90.0, since=0) == {"at": 1000.5}
    assert histories.get("", 30.0, since=0) is None


def test_an_old_report_is_not_returned(store: Store) -> None:
    store.node_histories.put("", 90.0, 1000.0, {"at": 1000.0})
    assert store.node_histories.get("", 90.0, since=1000.0) is not None
    assert store.node_histories.get("", 90.0, since=1000.1) is None

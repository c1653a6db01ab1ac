"""A node's probes in earlier runs of any chain on its cluster."""

from tests.support.stories import T0, a_run, losses, record_run

from tipcflow.domain import Phase, Status
from tipcflow.store import Store


def _run(store: Store, number: int, value: float, **fields: object) -> None:
    status = fields.pop("status", Status.PASS)
    run = record_run(store, a_run(f"run-{number}", created_at=T0 + number, **fields), status=status)
    timed = {"rank": -1, "unit": "s", "phase": Phase.RESOURCE}
    store.measurements.add(losses(run.id, [value, value * 2], metric="probe.cpu", **timed))


def test_a_node_has_its_own_history_of_probes(store: Store) -> None:
    _run(store, 0, 0.1)
    _run(store, 1, 0.2, chain="another/chain")
    _run(store, 2, 9.0, status=Status.INFRA_FAILURE)
    _run(store, 3, 9.0, cluster="elsewhere")
    _run(store, 9, 9.0)
    now = a_run("now", created_at=T0 + 5)
    store.runs.create(now)
    found = {
        node: {name: [round(one, 3) for one in past] for name, past in known.items()}
        for node, known in store.history.node_probes(now).items()
    }
    assert found == {"node-a": {"probe.cpu": [0.15, 0.3]}}
    assert store.history.node_probes(now, limit=1)["node-a"]["probe.cpu"][0] > 0.25


def test_the_class_that_has_the_chains_history_is_known(store: Store) -> None:
    for number, environment in enumerate(("cpu/a", "cpu/a", "cpu/b")):
        record_run(
            store, a_run(f"run-{number}", created_at=T0 + number, environment=environment), status=Status.PASS
        )
    assert store.history.elsewhere(a_run("now", created_at=T0 + 9, environment="cpu/c")) == ("cpu/a", 2)
    second = a_run("now", created_at=T0 + 9, environment="cpu/b")
    assert store.history.elsewhere(second) == ("", 0)
    assert store.history.elsewhere(second, enough=5) == ("cpu/a", 2), "one run is not enough to compare with"
    assert store.history.elsewhere(a_run("now", created_at=T0 + 9, environment="cpu/a"), enough=5) == ("", 0)

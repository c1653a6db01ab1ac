import pytest
from tests.support.stories import INFER, T0, TRAIN, a_plan, a_run

from tipcflow.domain import ConfigError, Run, Status
from tipcflow.store import Store
from tipcflow.store.schema import runs


def test_run_and_plan_are_equal_after_a_round_trip(store: Store) -> None:
    run = a_run(seed=7, suite_commit="abc", trigger="weekly", reason="möglich\n\x1b[31m", framework="paddle 3.3.1")
    plan = a_plan(seed=7)
    store.runs.create(run, plan)
    assert store.runs.get(run.id) == run
    assert store.plans.get(run.id) == plan


def test_every_field_of_a_run_has_a_column() -> None:
    assert set(Run.model_fields) == set(runs.c.keys())


def test_a_run_id_is_used_once(store: Store) -> None:
    store.runs.create(a_run(), a_plan())
    with pytest.raises(ConfigError, match="a run with that id exists"):
        store.runs.create(a_run(model="other"))
    assert store.runs.get(a_run().id).model == "mobilenet_v3_small"


def test_run_with_an_invalid_plan_is_not_stored(store: Store) -> None:
    plan = a_plan()
    twice = plan.model_copy(update={"steps": (*plan.steps, plan.steps[0])})
    with pytest.raises(Exception, match=r"(?i)unique"):
        store.runs.create(a_run(), twice)
    assert store.runs.newest() == []


def test_a_run_may_begin_without_a_plan(store: Store) -> None:
    store.runs.create(a_run())
    store.runs.finish(a_run().id, Status.CONFIG_ERROR, "no such mode", T0 + 1)
    assert store.plans.get_or_none(a_run().id) is None
    with pytest.raises(ConfigError, match=r"(?s)has no plan.*hint: no such mode"):
        store.plans.get(a_run().id)
    facts = store.history.facts(a_run().id)
    assert facts.plan.steps == ()
    assert facts.plan.chain == a_run().chain


def test_plan_is_replaceable_until_the_first_attempt(store: Store) -> None:
    store.runs.create(a_run())
    store.plans.replace(a_run().id, a_plan(steps=a_plan().steps[:1]))
    store.plans.replace(a_run().id, a_plan())
    store.steps.set(a_run().id, INFER, Status.BLOCKED)
    assert store.plans.get(a_run().id) == a_plan()
    store.attempts.open(a_run().id, TRAIN, ["node-a"], T0)
    with pytest.raises(ConfigError, match="has started"):
        store.plans.replace(a_run().id, a_plan(steps=()))
    assert store.plans.get(a_run().id) == a_plan()
    with pytest.raises(ConfigError, match="no such run"):
        store.plans.replace("unknown", a_plan())


def test_learned_facts_of_a_run_are_updated(store: Store) -> None:
    store.runs.create(a_run())
    store.runs.update(
        a_run().id, suite_commit="f00", framework="paddle", environment="cpu", nodes=("x", "y"), seed=3
    )
    assert store.runs.get(a_run().id) == a_run(
        suite_commit="f00", framework="paddle", environment="cpu", nodes=("x", "y"), seed=3
    )
    store.runs.update(a_run().id)


@pytest.mark.parametrize("field", ["id", "status", "ended_at", "created_at", "nonsense"])
def test_identity_of_a_run_cannot_change(store: Store, field: str) -> None:
    store.runs.create(a_run())
    with pytest.raises(ValueError, match=field):
        store.runs.update(a_run().id, **{field: "x"})


def test_an_update_of_the_wrong_type_is_refused(store: Store) -> None:
    store.runs.create(a_run())
    with pytest.raises(ValueError, match="seed"):
        store.runs.update(a_run().id, seed="seven")


def test_a_run_ends_and_may_be_judged_again(store: Store) -> None:
    store.runs.create(a_run())
    store.runs.finish(a_run().id, Status.FAILED, "why", T0 + 5)
    store.runs.finish(a_run().id, Status.PASS, "", T0 + 6)
    ended = store.runs.get(a_run().id)
    assert (ended.status, ended.reason, ended.ended_at) == (Status.PASS, "", T0 + 6)
    for status in (Status.BLOCKED, Status.NOT_RUN, Status.INSUFFICIENT_DATA):
        with pytest.raises(ValueError, match="not a status of runs"):
            store.runs.finish(a_run().id, status, "", T0)


def test_an_unknown_run_lists_the_latest_runs(store: Store) -> None:
    with pytest.raises(ConfigError, match=r"the database (sqlite|postgresql).* has no runs; TIPCFLOW_HOME"):
        store.runs.find("latest")
    for number in range(7):
        store.runs.create(a_run(f"run-{number}", created_at=T0 + number))
    for ask in (
        store.runs.get,
        store.runs.find,
        store.plans.get,
        lambda name: store.runs.finish(name, Status.PASS, "", T0),
    ):
        with pytest.raises(ConfigError) as caught:
            ask("unknown")
        assert str(caught.value).splitlines()[1:] == [
            "  hint: the latest runs:",
            *(f"    run-{number}" for number in (6, 5, 4, 3, 2)),
        ]
        assert "found 'unknown'" in str(caught.value)


def test_a_run_is_found_by_its_first_characters(store: Store) -> None:
    for name in ("20261121t09-a", "20261121t09-ab", "20261122t10-b", "2026%_x"):
        store.runs.create(a_run(name, created_at=T0 + len(name)))
    assert store.runs.find("20261122").id == "20261122t10-b"
    assert store.runs.find("20261121t09-a").id == "20261121t09-a"
    assert store.runs.find("latest").id == "20261121t09-ab"
    assert store.runs.find("2026%").id == "2026%_x"
    with pytest.raises(ConfigError, match="no such run"):
        store.runs.find("20261_")
    with pytest.raises(ConfigError, match="no such run"):
        store.runs.find("")
    with pytest.raises(ConfigError, match="2 runs have this prefix") as caught:
        store.runs.find("20261121")
    assert "20261121t09-a\n    20261121t09-ab" in str(caught.value) or "20261121t09-ab\n    20261121t09-a" in str(
        caught.value
    )


def test_runs_are_listed_newest_first(store: Store) -> None:
    for number, chain in enumerate("xyx"):
        store.runs.create(a_run(f"run-{number}", chain=chain, created_at=T0 + number))
    store.runs.finish("run-0", Status.FAILED, "", T0 + 9)
    assert [run.id for run in store.runs.newest()] == ["run-2", "run-1", "run-0"]
    assert [run.id for run in store.runs.newest(limit=2)] == ["run-2", "run-1"]
    assert [run.id for run in store.runs.newest(chain="x")] == ["run-2", "run-0"]
    assert [run.id for run in store.runs.newest(status=Status.FAILED)] == ["run-0"]


def test_secrets_in_stored_reasons_are_masked(store: Store) -> None:
    store.runs.create(a_run(), a_plan())
    store.runs.finish(a_run().id, Status.FAILED, "403 for url https://h/w?token=SECRET123&a=1", T0 + 1)
    assert store.runs.get(a_run().id).reason == "403 for url https://h/w?token=***&a=1"

"""The status `unconfirmed` (schema 0006): the database takes it, and a downgrade leaves no word behind."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError
from tests.support.stories import T0, a_plan, a_run

from tipcflow.domain import CheckResult, Status
from tipcflow.store import Store, migrate
from tipcflow.store.engine import make_engine, reading, writing


def _statuses(url: str) -> list[str]:
    engine = make_engine(url)
    try:
        with reading(engine) as connection:
            query = "SELECT status FROM runs UNION ALL SELECT status FROM check_results"
            return [str(word) for word in connection.execute(text(query)).scalars()]
    finally:
        engine.dispose()


def test_downgrade_turns_unconfirmed_into_regression(empty_url: str) -> None:
    with Store.open(empty_url) as store:
        store.runs.create(a_run("run-a"), a_plan())
        doubt = CheckResult(check="speed.ips", status=Status.UNCONFIRMED, reason="no time left")
        store.checks.replace("run-a", [doubt])
        store.runs.finish("run-a", Status.UNCONFIRMED, "speed.ips: no time left", T0 + 1)
    migrate.downgrade(empty_url, "0005")
    assert _statuses(empty_url) == ["regression", "regression"]
    engine = make_engine(empty_url)
    with pytest.raises(IntegrityError), writing(engine) as connection:
        connection.execute(text("UPDATE runs SET status = 'unconfirmed'"))
    engine.dispose()
    migrate.upgrade(empty_url)
    with Store.open(empty_url) as store:
        assert store.runs.get("run-a").status is Status.REGRESSION
        assert store.checks.results("run-a")[0].status is Status.REGRESSION

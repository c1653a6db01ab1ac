"""An Airflow for `tipcflow trigger`."""

from collections.abc import Iterator

import pytest
from tests.support.airflow.fake import FakeAirflow, serve

from tipcflow.cli.trigger import wait as trigger_wait


@pytest.fixture
def airflow(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAirflow]:
    monkeypatch.setattr(trigger_wait, "POLL_S", 0.01)
    monkeypatch.setattr(trigger_wait, "GRACE_S", 0.2)
    monkeypatch.setattr(trigger_wait, "GRACE_WITHOUT_RUN_S", 0.1)
    monkeypatch.setattr(trigger_wait, "_LONGEST_CALL_S", 2.0)
    monkeypatch.delenv("TIPCFLOW_AIRFLOW_TOKEN", raising=False)
    with serve() as served:
        monkeypatch.setenv("TIPCFLOW_AIRFLOW_URL", f"{served.url}/")
        monkeypatch.setenv("TIPCFLOW_AIRFLOW_USER", "ci")
        monkeypatch.setenv("TIPCFLOW_AIRFLOW_PASSWORD", "s3cret-word")
        yield served

"""`tipcflow trigger` without TIPCFLOW_AIRFLOW_URL uses the Airflow of `tipcflow airflow up`."""

import json
import os
from pathlib import Path

import pytest

from devcluster.keep.record import Record
from devcluster.local_nodes.processes import start_time
from tipcflow.cli.local.running import local_airflow

URL = "http://127.0.0.1:8099"


@pytest.fixture
def record(home: Path, monkeypatch: pytest.MonkeyPatch) -> Record:
    monkeypatch.delenv("TIPCFLOW_AIRFLOW_URL", raising=False)
    passwords = home / "airflow" / "passwords.json"
    passwords.parent.mkdir(parents=True)
    passwords.write_text(json.dumps({"admin": "s3cret"}))
    facts = {"url": URL, "user": "admin", "passwords_file": str(passwords)}
    made = Record("airflow", os.getpid(), start_time(os.getpid()), 0.0, ready=True, facts=facts)
    made.save(home)
    return made


def test_the_running_one_is_used(record: Record) -> None:
    airflow = local_airflow()
    assert airflow is not None
    with airflow:
        assert airflow.url == URL


def test_a_variable_names_another_one(record: Record, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIPCFLOW_AIRFLOW_URL", "https://airflow.example.org")
    assert local_airflow() is None


@pytest.mark.parametrize("change", [{"ready": False}, {"started": 1}, {"failed": "the scheduler ended"}])
def test_stopped_local_airflow_is_not_used(record: Record, home: Path, change: dict[str, object]) -> None:
    for name, value in change.items():
        setattr(record, name, value)
    record.save(home)
    assert local_airflow() is None

"""Imports that are done before tasks are forked, in the scheduler and in a Celery worker."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from devcluster.airflow.settings_file import read_settings
from tipcflow_operators.airflow import preload

ROOT = Path(__file__).resolve().parents[3]


def test_everything_that_tasks_need_can_be_imported(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="tipcflow_operators.airflow.preload"):
        preload.warm()
    assert caplog.messages == []
    needed = (
        "tipcflow_operators.tasks.step",
        "tipcflow_operators.tasks.verdict",
        "tipcflow.execute.run.step",
        "tipcflow.store.run.runs",
        "asyncssh",
    )
    assert [name for name in needed if name not in sys.modules] == []


def test_a_failed_import_is_reported_and_left_to_its_task(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(preload, "_LATE", ("tipcflow_operators.no_such_module",))
    preload.warm()
    assert caplog.messages == [
        "cannot preload tipcflow_operators.no_such_module: No module named 'tipcflow_operators.no_such_module'"
    ]


def test_celery_worker_imports_before_the_fork() -> None:
    """A real Celery application with the shipped setting does what a worker does before it forks."""
    (shipped,) = (
        setting
        for setting in read_settings(ROOT / "configs" / "airflow.env")
        if setting.option == "extra_celery_config"
    )
    code = """
import sys
from airflow.providers.celery.executors.celery_executor_utils import app
assert "tipcflow.execute.run.step" not in sys.modules
app.loader.import_default_modules()
print(sorted({"tipcflow.execute.run.step", "tipcflow_operators.tasks.step", "asyncssh"} - sys.modules.keys()))
"""
    env = {**os.environ, "AIRFLOW__CELERY__EXTRA_CELERY_CONFIG": shipped.value}
    ended = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert ended.stdout.splitlines()[-1:] == ["[]"], ended.stderr

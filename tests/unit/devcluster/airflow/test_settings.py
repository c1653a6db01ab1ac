"""The settings that we ship: Airflow knows each, none is a secret, the page in docs/ lists the same."""

import importlib.util
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

from devcluster.airflow.settings_file import Setting, read_settings
from devcluster.airflow.settings_page import table
from tipcflow.domain import ConfigError

ROOT = Path(__file__).resolve().parents[4]
SHIPPED = read_settings(ROOT / "configs" / "airflow.env")
READERS = {"integer": int, "float": float, "string": str, "boolean": lambda text: {"True": 1, "False": 0}[text]}


@pytest.fixture(scope="module")
def known() -> dict[tuple[str, str], dict[str, Any]]:
    """All options of the installed Airflow and of its Celery provider, without importing Airflow."""
    spec = importlib.util.find_spec("airflow")
    assert spec is not None
    assert spec.submodule_search_locations
    text = Path(spec.submodule_search_locations[0], "config_templates", "config.yml").read_text()
    sections = yaml.load(text, yaml.CSafeLoader)
    provider = Path(spec.submodule_search_locations[0], "providers", "celery", "get_provider_info.py")
    sections.update(runpy.run_path(str(provider))["get_provider_info"]()["config"])
    return {
        (section, option): facts
        for section, result in sections.items()
        for option, facts in (result["options"] or {}).items()
    }


@pytest.mark.parametrize("setting", SHIPPED, ids=lambda setting: f"{setting.section}.{setting.option}")
def test_airflow_knows_the_setting_and_its_kind(
    setting: Setting, known: dict[tuple[str, str], dict[str, Any]]
) -> None:
    facts = known[setting.section, setting.option]
    READERS[facts["type"]](setting.value)
    assert not facts.get("sensitive")
    assert "deprecat" not in str(facts.get("description", "")).lower()


def test_no_place_is_in_the_settings() -> None:
    assert [
        one.key for one in SHIPPED if "/" in one.value or "localhost" in one.value or "127." in one.value
    ] == []


def test_a_task_survives_two_slow_responses() -> None:
    """Heartbeats go through the api-server: its patience must be longer than one call's."""
    values = {one.option: one.value for one in SHIPPED}
    assert float(values["task_instance_heartbeat_timeout"]) >= 2 * float(values["execution_api_timeout"])
    assert float(values["dag_file_processor_timeout"]) > float(values["dagbag_import_timeout"])


def test_tasks_of_a_restarted_scheduler_wait_no_longer_than_others() -> None:
    """No check of heartbeats includes them: the check for orphaned tasks, by default every 300 s, finds them."""
    values = {one.option: one.value for one in SHIPPED}
    assert float(values["orphaned_tasks_check_interval"]) <= float(values["task_instance_heartbeat_timeout"])


def test_the_page_matches_the_file() -> None:
    page = (ROOT / "docs" / "reference" / "airflow-settings.md").read_text()
    assert table(SHIPPED) in page, "stale: put in what `python -m devcluster.airflow.settings_page` prints"


def read(tmp_path: Path, text: str) -> list[Setting]:
    path = tmp_path / "airflow.env"
    path.write_text(text)
    return read_settings(path)


def test_setting_has_the_comment_above(tmp_path: Path) -> None:
    text = "# a heading\n\n# first,\n#  and more\nAIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL=60\n"
    assert read(tmp_path, text) == [Setting("AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL", "60", "first, and more")]
    assert (read(tmp_path, text)[0].section, read(tmp_path, text)[0].option) == (
        "dag_processor",
        "refresh_interval",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "# why\nAIRFLOW__CORE=1",
            r"airflow.env:2: not a setting; found 'AIRFLOW__CORE=1'; expected AIRFLOW__SECTION",
        ),
        ("# why\nTIPCFLOW_HOME=/x", "airflow.env:2: not a setting"),
        ("# why\nAIRFLOW__CORE__PARALLELISM", "not a setting"),
        ("# why\nAIRFLOW__CORE__PARALLELISM = 3", "not a setting"),
        ('# why\nAIRFLOW__CORE__PARALLELISM="3"', "not a setting"),
        ("# why\n\nAIRFLOW__CORE__PARALLELISM=3", "airflow.env:3: AIRFLOW__CORE__PARALLELISM: no reason given"),
        ("# a\nAIRFLOW__CORE__X=3\n# b\nAIRFLOW__CORE__X=3", "airflow.env:4: AIRFLOW__CORE__X: duplicate key"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read(tmp_path, text)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"airflow.env: cannot be read"):
        read_settings(tmp_path / "airflow.env")

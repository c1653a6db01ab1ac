"""A keeper that cannot start its service: the command gets the reason, and only the log is left."""

from pathlib import Path

import pytest

from devcluster.keep import control
from devcluster.keep.record import exclusive, read
from tipcflow.domain import ConfigError, InfraError

pytestmark = pytest.mark.process


def start(home: Path, name: str, config: dict[str, object]) -> None:
    with exclusive(home, name):  # type: ignore[arg-type]
        control.start(home, name, config, lambda _: None)  # type: ignore[arg-type]


def test_a_wrong_settings_file_is_a_config_error(tmp_path: Path) -> None:
    (tmp_path / "airflow.env").write_text("not a setting\n")
    folders = {"dags": str(tmp_path), "plugins": str(tmp_path), "configs": str(tmp_path), "port": 0}
    with pytest.raises(ConfigError, match=r"airflow\.env:1: "):
        start(tmp_path / "home", "airflow", folders)
    assert read(tmp_path / "home", "airflow") is None


def test_a_bug_in_the_keeper_names_its_log(tmp_path: Path) -> None:
    """The configuration lacks a key: a bug, whose traceback is in the log."""
    home = tmp_path / "home"
    with pytest.raises(InfraError, match="KeyError: 'cluster_file'") as caught:
        start(home, "nodes", {"names": ["a"]})
    assert str(home / "local" / "nodes.log") in caught.value.hint
    assert "Traceback" in (home / "local" / "nodes.log").read_text()
    assert read(home, "nodes") is None


def test_a_keeper_that_cannot_run_at_all_ends_with_its_output(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match=r"the process of the local nowhere ended\n(?s:.*)No module named"):
        start(tmp_path, "nowhere", {})

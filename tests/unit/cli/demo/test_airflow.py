"""Messages of the demo about its Airflow, and events that it does not report."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from devcluster.signals import interrupt_guard
from tipcflow.cli.demo import airflow as demo_airflow
from tipcflow.cli.demo.airflow import DemoOptions, keep_running, login_lines, shipped
from tipcflow.cli.demo.command import CHAINS, PARAMS, SUITE, environment_of
from tipcflow.cli.main import app
from tipcflow.config.suite import load_suite
from tipcflow.domain import ConfigError, InfraError

ROOT = Path(__file__).resolve().parents[4]
SECRET = "s3cret-word"


@pytest.fixture
def stack() -> SimpleNamespace:
    return SimpleNamespace(
        url="http://127.0.0.1:8080", user="admin", password=SECRET, passwords_file=Path("/h/p"), check=lambda: None
    )


def test_the_password_is_for_terminals_alone(stack: SimpleNamespace) -> None:
    assert login_lines(stack, secret=False) == [
        "  address    http://127.0.0.1:8080",
        "  user       admin",
        "  password   in /h/p",
    ]
    assert login_lines(stack, secret=True)[-1] == f"  password   {SECRET}  (stored in /h/p)"


def test_without_a_terminal_no_password_is_printed(
    stack: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[str] = []
    monkeypatch.setattr(demo_airflow.time, "sleep", lambda _: _raise_once())
    with interrupt_guard.installed():
        keep_running(stack, "r1", messages.append)
    assert "  this run   http://127.0.0.1:8080/certification/runs/r1" in messages
    assert messages[-1] == "stopping Airflow and the nodes"
    assert SECRET not in "\n".join(messages)


def _raise_once() -> None:
    import signal

    signal.raise_signal(signal.SIGINT)


def test_component_that_ends_during_the_demo_is_an_error(stack: SimpleNamespace) -> None:
    def dead() -> None:
        raise InfraError("Airflow's triggerer ended with exit code 1")

    stack.check = dead
    with pytest.raises(InfraError, match="triggerer"):
        keep_running(stack, "r1", lambda _: None)


def test_every_shipped_chain_is_planned() -> None:
    """The params file of each suite's demo is in the suite, and in the catalog of DAGs."""
    for suite, params in CHAINS.items():
        options = DemoOptions(suite, params, "lite_train_lite_infer", 0)
        assert (ROOT / "configs" / "chains" / f"{options.chain}.txt").is_file()
        assert (Path(load_suite(suite, ROOT / "configs").folder) / params).is_file()
    assert [environment_of(suite, ROOT / "configs") for suite in CHAINS] == [
        "node-cpu", "node-torch", "node-ps",
    ]  # fmt: skip


def test_a_suite_without_a_demo_is_one_error() -> None:
    result = CliRunner().invoke(app, ["demo", "--suite", "PaddleClas"])
    assert isinstance(result.exception, ConfigError)
    assert str(result.exception) == (
        "--suite: this suite has no demo; found 'PaddleClas'; "
        "expected mobilenet_v3_small or pytorch_multinode or parameter_server"
    )


def test_missing_wheel_is_one_error_before_the_demo_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(ROOT / "configs"))
    monkeypatch.setenv("TIPCFLOW_WHEEL_URL", str(tmp_path))
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    result = CliRunner().invoke(app, ["demo", "--suite", "pytorch_multinode"])
    assert isinstance(result.exception, ConfigError)
    assert f"node-torch needs the wheel of torch 2.13.0+cpu; found '{tmp_path}: a folder" in str(result.exception)
    assert not (tmp_path / "home").exists()


def test_a_params_file_has_a_chain() -> None:
    options = DemoOptions(SUITE, PARAMS, "lite_train_lite_infer", 0)
    assert options.chain == (
        "mobilenet_v3_small/mobilenet_v3_small/train_linux_gpu_fleet_normal_infer_python_linux_gpu_cpu"
    )


def test_the_folders_next_to_the_configs_win_over_this_clones(tmp_path: Path) -> None:
    (tmp_path / "dags").mkdir()
    assert shipped("dags", tmp_path / "configs") == tmp_path / "dags"
    assert shipped("plugins", tmp_path / "configs") == Path(__file__).resolve().parents[4] / "plugins"
    with pytest.raises(InfraError, match="no folder nothing next to"):
        shipped("nothing", tmp_path / "configs")


def test_the_shipped_chain_of_the_demo_exists() -> None:
    options = DemoOptions(SUITE, PARAMS, "", 0)
    assert (Path(__file__).resolve().parents[4] / "configs" / "chains" / f"{options.chain}.txt").is_file()

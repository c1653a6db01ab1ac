"""A CI host needs only the base installation; commands that need an extra name it."""

import os
import subprocess
import tomllib
from pathlib import Path

import pytest

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[3]
PARAMS = ROOT / "configs/chains/mobilenet_v3_small/mobilenet_v3_small/train_infer_python.txt"
CLUSTER = ["--cluster", str(ROOT / "configs/clusters/example.yaml")]
# Everything that `tipcflow trigger` imports, also late; reports about several runs need the database anyway.
TRIGGER = """
import importlib, pkgutil
import tipcflow.airflow_api, tipcflow.cli.trigger, tipcflow.report
for package in (tipcflow.airflow_api, tipcflow.cli.trigger, tipcflow.report):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not module.name.startswith(("tipcflow.report.comparison", "tipcflow.report.chain")):
            importlib.import_module(module.name)
"""


def call(base: Path, *words: str, folder: Path = Path("/"), **env: str) -> "subprocess.CompletedProcess[str]":
    own = {k: v for k, v in os.environ.items() if not k.startswith(("TIPCFLOW", "AIRFLOW", "PYTHON"))}
    command = [base / words[0], *words[1:]]
    return subprocess.run(command, cwd=folder, env=own | env, capture_output=True, text=True)


def test_the_base_installation_has_none_of_the_packages_of_the_extras(base: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    modules = {"pyyaml": "yaml", "apache-airflow": "airflow", "apache-airflow-providers-ssh": "airflow.providers"}
    found = []
    for requirement in {name for extra in project["optional-dependencies"].values() for name in extra}:
        name = requirement.partition(">=")[0].partition("[")[0]
        module = modules.get(name, name)
        if name != "tipcflow" and call(base, "python", "-c", f"import {module}").returncode == 0:
            found.append(name)
    assert found == []


@pytest.mark.parametrize("words", ["--version", "--help", "trigger --help", "run --help"])
def test_help_and_version_are_printed_without_an_extra(base: Path, words: str) -> None:
    done = call(base, "tipcflow", *words.split())
    assert (done.returncode, done.stderr) == (0, "")


def test_trigger_and_its_reports_need_no_extra(base: Path) -> None:
    done = call(base, "python", "-c", TRIGGER)
    assert (done.returncode, done.stderr) == (0, "")


def test_trigger_queries_the_given_airflow(base: Path, tmp_path: Path) -> None:
    done = call(
        base, "tipcflow", "trigger", "toy/toy/a", "--wait", "--timeout", "0.01", "--junit", str(tmp_path / "j"),
        TIPCFLOW_AIRFLOW_URL="http://127.0.0.1:9", TIPCFLOW_AIRFLOW_TOKEN="none",
    )  # fmt: skip
    assert done.returncode == 5
    assert done.stderr.startswith("infra_failure: ")
    assert "127.0.0.1:9" in done.stderr


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (
            ["run", str(PARAMS), "--suite", "mobilenet_v3_small", "--mode", "lite_train_lite_infer", *CLUSTER],
            "run",
        ),
        (["plan", str(PARAMS), "--suite", "mobilenet_v3_small", "--mode", "lite_train_lite_infer"], "run"),
        (["runs"], "run"),
        (["gate", "20000101t000000-none-00000000"], "run"),
        (["nodes"], "run"),
        (["db", "upgrade"], "run"),
        (["demo", "--cli"], "devcluster"),
        (["local", "up"], "devcluster"),
        (["parse", str(PARAMS)], "analysis"),
    ],
)
def test_command_names_the_required_extra(base: Path, tmp_path: Path, words: list[str], extra: str) -> None:
    env = {"TIPCFLOW_CONFIG_DIR": str(ROOT / "configs"), "TIPCFLOW_HOME": str(tmp_path)}
    done = call(base, "tipcflow", *words, folder=tmp_path, **env)
    expected = f"config_error: tipcflow {words[0]} requires the extra '{extra}': pip install 'tipcflow[{extra}]'\n"
    assert (done.returncode, done.stderr) == (2, expected)

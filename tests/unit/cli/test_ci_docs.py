"""The examples of the pages about CI are what tipcflow, YAML and the shell understand."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from tipcflow.cli.main import app
from tipcflow.domain import Status, exit_code

TUTORIALS = Path(__file__).parents[3] / "docs/tutorial"
GITLAB, JENKINS = ((TUTORIALS / name).read_text() for name in ("gitlab.md", "jenkins.md"))
PAGE = (TUTORIALS / "ci.md").read_text()
COMPOSE = (Path(__file__).parents[3] / "docs/tutorial/compose.md").read_text()
# A command with the lines that it continues in; Groovy writes two backslashes for one.
COMMAND = re.compile(r"tipcflow trigger (?:[^\n]*\\\n)*[^\n]*")


def commands() -> list[str]:
    found = [re.sub(r"\\+\n\s*", " ", match) for match in COMMAND.findall(PAGE + GITLAB + JENKINS + COMPOSE)]
    return [command.strip().strip("`") for command in found if "--" in command]


def test_page_has_five_commands() -> None:
    assert len(commands()) == 5


@pytest.mark.parametrize("command", commands())
def test_every_command_is_one(command: str) -> None:
    command = re.sub(r"\$\([^)]*\)", "x", command).replace("$AGAIN", "--again").replace("$BASE", "--base x")
    words = shlex.split(re.sub(r"\$\{\w+:\+(.*?)\}", r"\1", command))
    trigger = get_command(app).commands["trigger"]  # type: ignore[attr-defined]
    made = trigger.make_context("trigger", words[2:], resilient_parsing=False)
    assert made.params["wait"] is True
    assert made.params["chains"]
    assert made.params["base"] or command in COMPOSE, "a pull request is compared with its merge base"


def test_workflow_is_valid_yaml_with_the_needed_variables() -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (text,) = [block for block in blocks if block.startswith("name:")]
    job = yaml.safe_load(text)["jobs"]["certify"]
    (step,) = [step for step in job["steps"] if step.get("name") == "certify"]
    assert {"TIPCFLOW_AIRFLOW_URL", "TIPCFLOW_AIRFLOW_USER", "TIPCFLOW_AIRFLOW_PASSWORD"} <= set(step["env"])
    # Whatever a pull request can name comes as a variable, never as text of the script.
    assert "${{" not in step["run"]
    for step in job["steps"]:
        if "run" in step:
            subprocess.run(["bash", "-n", "-c", step["run"]], check=True, timeout=20)
    assert job["timeout-minutes"] > 90


def test_the_pipelines_shell_is_shell() -> None:
    (text,) = re.findall(r"```groovy\n(.*?)```", JENKINS, re.DOTALL)
    scripts = re.findall(r"'''(.*?)'''", text, re.DOTALL)
    assert len(scripts) == 2
    for script in scripts:
        subprocess.run(["sh", "-n", "-c", script.replace("\\\\\n", "\\\n")], check=True, timeout=20)
    assert text.count("{") == text.count("}")


def test_documented_exit_codes_equal_the_table_of_statuses() -> None:
    rows = {int(code) for code in re.findall(r"^\| (\d) \|", PAGE, re.MULTILINE)}
    assert rows == {exit_code(status) for status in Status if status is not Status.BLOCKED}


def test_the_job_for_gitlab_is_yaml_and_its_script_is_shell() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", GITLAB, re.DOTALL)
    job = yaml.safe_load(text)["certify"]
    for line in (*job["before_script"], *job["script"]):
        subprocess.run(["sh", "-n", "-c", line], check=True, timeout=20)
    assert job["stage"] in yaml.safe_load(text)["stages"]
    assert job["allow_failure"]["exit_codes"] == [exit_code(Status.INFRA_FAILURE)]
    assert job["artifacts"]["reports"]["junit"] in job["script"][-1]
    assert "CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID" in job["rules"][0]["if"]
    assert int(job["timeout"].split()[0]) > 90


def test_the_commands_of_both_pages_pass_the_base_of_a_change() -> None:
    for page, variable in ((GITLAB, "CI_MERGE_REQUEST_DIFF_BASE_SHA"), (JENKINS, "CHANGE_TARGET")):
        assert f'${{{variable}:+--base "${variable}"}}' in page

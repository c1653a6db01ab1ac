"""docs/tutorial/extend-suite.md: the file with targets is valid, and the commands without nodes run."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tipcflow.config.loader import load_yaml
from tipcflow.config.references import References

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "tutorial" / "extend-suite.md").read_text()
# Commands that need nodes or runs.
_ELSEWHERE = ("tipcflow plan", "tipcflow run", "tipcflow show", "tipcflow history")


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The toy suite as MySuite, with its suite file and its first chain."""
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(tmp_path / "configs"))
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "tests" / "support" / "toy_suite", tmp_path / "MySuite")
    (tmp_path / "configs" / "suites").mkdir(parents=True)
    text = "name: MySuite\nfolder: MySuite\ndialects: [models/template]\n"
    (tmp_path / "configs" / "suites" / "MySuite.yaml").write_text(text)
    return tmp_path / "MySuite"


def test_commands_of_the_page_add_a_chain(suite: Path, tipcflow: Callable[..., Any]) -> None:
    assert tipcflow("import", "MySuite", "--suite", "MySuite").code == 0
    printed = {}
    for line in re.findall(r"(?m)^ *((?:tipcflow|cp) .*)", PAGE):
        command, *words = line.replace("MODEL", "toy").split()
        if command == "cp":
            shutil.copy(*words)
        elif not line.startswith(_ELSEWHERE):
            printed[words[0]] = tipcflow(*words).out
    assert list(printed) == ["lint", "import"]
    assert "1 suite file: its globs were compared with the suite's files\n" in printed["lint"]
    (shown,) = re.findall(r"(?m)^    (suite MySuite: .*\n    .*)", PAGE)
    assert printed["import"].startswith(shown.replace("\n    ", "\n"))


def test_targets_of_the_page_are_valid(tmp_path: Path) -> None:
    ((name, text),) = re.findall(r'```yaml title="(.*?)"\n(.*?)```', PAGE, re.DOTALL)
    file = tmp_path / Path(name).name
    file.write_text(re.sub(r"(?m)^    ", "", text))
    (target,) = load_yaml(file, References).references
    assert (target.target, target.tolerance, target.unit) == (0.85, 0.05, "1")
    assert f"top1 0.875, target {target.target} ± {target.tolerance}\n" in PAGE

"""The commands of a tutorial's page, run as a user runs them, with a configuration and a home of the user."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = str(Path(sys.executable).with_name("tipcflow"))
DEADLINE_S = 1200.0
# Variables of the user's own tipcflow.
_REMOVED = ("TIPCFLOW_DATABASE_URL", "TIPCFLOW_AIRFLOW_URL")


def user_folder(folder: Path) -> Path:
    """Make a folder with configs, DAGs and plugins, and a home that shares the nodes' environment."""
    made = ROOT / ".tipcflow" / "envs"
    assert (made / "node-cpu" / ".tipcflow-complete").exists(), "make test makes the nodes' environment"
    shutil.copytree(ROOT / "configs", folder / "configs", ignore=shutil.ignore_patterns("local.yaml"))
    shutil.copytree(ROOT / "dags", folder / "dags", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("plugins", "examples"):
        (folder / name).symlink_to(ROOT / name)
    (folder / ".tipcflow").mkdir()
    (folder / ".tipcflow" / "envs").symlink_to(made)
    return folder


class Shell:
    """Runs commands of a page in a folder of `user_folder`."""

    def __init__(self, folder: Path, **more: str) -> None:
        self.folder = folder
        environ = {key: value for key, value in os.environ.items() if key not in _REMOVED}
        self._environ = {
            **environ,
            "TIPCFLOW_HOME": str(folder / ".tipcflow"),
            "TIPCFLOW_CONFIG_DIR": str(folder / "configs"),
            **more,
        }

    def __call__(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run `tipcflow` with these words, or git."""
        command = [*words] if words[0] == "git" else [PROGRAM, *words]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self._environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )

    def stop(self) -> None:
        """End everything that a failed test may have left."""
        self("airflow", "down", "--force")
        self("local", "down", "--force")


def page_text(page: str) -> str:
    """The text of a page of docs/tutorial."""
    return (ROOT / "docs" / "tutorial" / page).read_text()


def page_commands(page: str, names: Mapping[str, str]) -> Iterator[list[str]]:
    """Words of the commands of a page, in order, with real names instead of those of the page.

    The first word is `git` or the first one after `tipcflow`.
    """
    for line in re.findall(r"(?m)^(?:tipcflow|git) .*", page_text(page)):
        words = line.partition("  #")[0].removeprefix("tipcflow ").split()
        yield [names.get(word, word) for word in words]

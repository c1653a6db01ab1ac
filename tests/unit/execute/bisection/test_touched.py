"""What commits touch, from real repositories."""

import subprocess
from pathlib import Path

import pytest

from tipcflow.bisect import Touches
from tipcflow.config.suite import Suite
from tipcflow.execute.bisection.commits import commits_between
from tipcflow.execute.bisection.touched import with_touches

pytestmark = pytest.mark.slow
PARAMS = "test_tipc/configs/toy/train_infer_python.txt"


class Repository:
    """Commits of a suite, each of which writes one file; the suite may be in a subfolder."""

    def __init__(self, root: Path, folder: str) -> None:
        self.root, self.folder = root, folder
        root.mkdir()
        self.git("init", "-q", "-b", "main")
        self.write("start", PARAMS, "norm_train:tools/train.py\n")
        self.write("train", "tools/train.py")
        self.write("other", "tools/other.py")
        self.write("readme", "README.md")
        self.git("checkout", "-q", "-b", "side")
        self.write("side", "tools/train.py")
        self.git("checkout", "-q", "main")
        self.write("setup", "setup.py")
        self.git("merge", "-q", "--no-ff", "-m", "merge", "side")
        self.git("mv", f"{folder}/tools/train.py", f"{folder}/tools/moved.py")
        self.git("commit", "-qm", "move")

    def git(self, *words: str) -> None:
        command = ["git", "-C", str(self.root), "-c", "user.name=t", "-c", "user.email=t@example.org", *words]
        subprocess.run(command, check=True, capture_output=True)

    def write(self, title: str, name: str, text: str = "") -> None:
        path = self.root / self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text or title)
        self.git("add", "-A")
        self.git("commit", "-qm", title)

    def found(self, cache: Path, params: str = PARAMS) -> dict[str, Touches]:
        suite = Suite(name="s", folder=str(self.root / self.folder), dialects=("tipc",))
        commits = commits_between(suite, "main~6", "main~1", cache=cache)
        return {commit.title: commit.touches for commit in with_touches(suite, commits, params, cache=cache)}


@pytest.mark.parametrize("folder", [".", "suites/toy"])
def test_commits_have_the_kinds_of_their_files(tmp_path: Path, folder: str) -> None:
    assert Repository(tmp_path / "r", folder).found(tmp_path / "cache") == {
        "start": Touches.OTHER,
        "train": Touches.CHAIN,
        "other": Touches.OTHER,
        "readme": Touches.DOCUMENTATION,
        "setup": Touches.OTHER,
        "merge": Touches.CHAIN,
    }


def test_commits_without_the_params_file_are_the_same(tmp_path: Path) -> None:
    found = Repository(tmp_path / "r", ".").found(tmp_path / "cache", "toy/none.txt")
    assert set(found.values()) == {Touches.OTHER}

"""The record of the files that Python processes open: each file of the suite once, also of killed processes."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tipcflow.remote.runner.opened_files import MORE, MOST, NAME, merge, source_of
from tipcflow.remote.runner.stack_signal import prepare

pytestmark = pytest.mark.process


class Suite:
    """A suite's folder and a job's folder."""

    def __init__(self, folder: Path) -> None:
        self.root, self.job = folder / "src", folder / "job"
        self.root.mkdir()
        self.job.mkdir()
        (self.root / "helper.py").write_text("value = 1\n")
        (self.root / "list.txt").write_text("a.jpg 1\n")
        (self.root / "a.jpg").write_text("")
        (folder / "other.yaml").write_text("")
        self.env = {"PATH": os.environ["PATH"]}
        prepare(self.env, str(self.job), stacks=False, probe=True, source=str(self.root))

    def run(self, code: str) -> int:
        (self.root / "train.py").write_text(textwrap.dedent(code))
        return subprocess.run([sys.executable, "train.py"], env=self.env, cwd=self.root, timeout=60).returncode

    def opened(self) -> list[str]:
        merge(str(self.job))
        return (self.job / NAME).read_text().splitlines()


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return Suite(tmp_path)


def test_only_scripts_modules_and_read_lists_are_recorded(suite: Suite) -> None:
    code = """
        import helper
        for _ in range(3):
            open("list.txt").read()
        open("a.jpg").read()
        open("../other.yaml").read()
        open("out.json", "w").write("{}")
    """
    assert suite.run(code) == 0
    assert suite.opened() == ["helper.py", "list.txt", "train.py"]


def test_module_that_is_compiled_already_is_recorded_as_its_source(suite: Suite) -> None:
    code = "import helper\n"
    assert suite.run(code) == 0
    (suite.job / NAME).unlink()
    assert suite.run(code) == 0
    assert suite.opened() == ["helper.py", "train.py"]


def test_record_of_a_killed_process_and_of_its_forks_is_complete(suite: Suite) -> None:
    code = """
        import os, signal
        os.closerange(3, 256)
        if os.fork() == 0:
            open("list.txt").read()
            os._exit(0)
        os.wait()
        import helper
        os.kill(os.getpid(), signal.SIGKILL)
    """
    assert suite.run(code) == -9
    assert suite.opened() == ["helper.py", "list.txt", "train.py"]


def test_scripts_that_a_process_starts_are_recorded(suite: Suite) -> None:
    (suite.root / "prepare.sh").write_text("true\n")
    code = """
        import subprocess
        subprocess.run(["bash", "prepare.sh"], check=True)
    """
    assert suite.run(code) == 0
    assert suite.opened() == ["prepare.sh", "train.py"]


def test_missing_file_and_a_full_folder_do_not_disturb_the_process(suite: Suite) -> None:
    suite.job.joinpath(NAME).mkdir()
    code = """
        try:
            open("missing.yaml")
        except FileNotFoundError:
            print("as usual")
    """
    assert suite.run(code) == 0


def test_a_record_that_is_too_long_is_marked(suite: Suite) -> None:
    for number in range(MOST + 2):
        (suite.root / f"{number}.json").write_text("{}")
    code = f"""
        for number in range({MOST + 2}):
            open(f"{{number}}.json").read()
    """
    assert suite.run(code) == 0
    assert suite.opened() == [MORE]


def test_compiled_files_have_a_source() -> None:
    assert source_of("a/__pycache__/b.cpython-311.opt-1.pyc") == "a/b.py"
    assert source_of("a/b.pyc") == "a/b.py"
    assert source_of("a/b.yaml") == "a/b.yaml"


def test_job_leaves_the_record_in_its_folder(bench) -> None:
    text = (
        r"""printf 'import helper2\nopen("l.txt").read()\n' > t.py; echo > helper2.py; echo a > l.txt; """
        f"{sys.executable} t.py; {sys.executable} t.py"
    )
    bench.end_of(text, framework_probe=True)
    (record,) = bench.workspace.rglob(NAME)
    assert record.read_text().splitlines() == ["helper2.py", "l.txt", "t.py"]

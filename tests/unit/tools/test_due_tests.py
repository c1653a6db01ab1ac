"""tools/due_tests.sh runs tests of containers and Slurm in CI: in repositories with stubs of its programs."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
SCRIPT = Path("tools/due_tests.sh")
STUBS = {
    "tools/test_compose.sh": '#!/bin/sh\necho "compose tests $*"\nsleep "${SLEEP:-0}"\nexit "${STATUS:-0}"\n',
    "tools/test_slurm.sh": '#!/bin/sh\necho "Slurm tests $*"\nsleep "${SLEEP:-0}"\nexit "${SLURM_STATUS:-0}"\n',
    # With -c: what is missing for Slurm. With -m: whether containers run.
    ".venv/bin/python": (
        '#!/bin/sh\n[ "$1" != -c ] || exec echo "$MISSING"\necho "$REASON"\nexit "${PREPARE_STATUS:-0}"\n'
    ),
}
SLURM, COMPOSE = "Slurm tests --fast", "compose tests --fast"
NO_SLURM = "==== NOT RUN: make test-slurm, although its files changed:"
NOT_RUN = "==== NOT RUN: make test-compose, although its files changed:"


def git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True, timeout=60)


def commit(folder: Path, name: str, count: int = 1) -> None:
    """Change a file in each of `count` commits."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        path.write_text(f"{number} of {count}\n")
        git(folder, "add", name)
        git(folder, "commit", "--message", f"{name} {number}")


def add_programs(folder: Path) -> None:
    for name, text in {str(SCRIPT): (ROOT / SCRIPT).read_text(), **STUBS}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository whose first commit changes docker/, followed by 21 others."""
    folder = tmp_path_factory.mktemp("history")
    git(folder, "init", "--initial-branch", "main")
    commit(folder, "docker/env.sh")
    commit(folder, "README.md", 21)
    return folder


@pytest.fixture
def repository(history: Path, tmp_path: Path) -> Path:
    folder = Path(shutil.copytree(history, tmp_path / "repository"))
    add_programs(folder)
    return folder


def due(folder: Path, *, left: int = 2000, **env: str) -> tuple[int, list[str]]:
    """Exit status and lines of the script."""
    done = subprocess.run(
        [folder / SCRIPT, str(left)],
        env={"PATH": os.environ["PATH"], "REASON": "", "MISSING": "", **env},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, [line for line in (done.stdout + done.stderr).splitlines() if line]


def test_no_test_is_due_without_a_change(repository: Path) -> None:
    assert due(repository) == (0, [])


@pytest.mark.parametrize("status", [0, 1])
@pytest.mark.parametrize(
    "name",
    [
        *("docker/redis.sh", "docker-compose.yaml", "compose.tls.yaml", "requirements/dev.txt", "operators/a.py"),
        *("tests/compose/test_secrets.py", "tests/support/compose/engine.py"),
    ],
)
def test_status_of_the_compose_tests_is_that_of_the_script(repository: Path, name: str, status: int) -> None:
    commit(repository, name)
    assert due(repository, STATUS=str(status)) == (status, [COMPOSE])


@pytest.mark.parametrize("status", [0, 1])
def test_status_of_the_tests_of_slurm_is_that_of_the_script(repository: Path, status: int) -> None:
    commit(repository, "tests/slurm/test_run.py")
    assert due(repository, SLURM_STATUS=str(status)) == (status, [SLURM])
    # A passed second part does not hide a failed first one.
    commit(repository, "docker/redis.sh")
    assert due(repository, SLURM_STATUS=str(status)) == (status, [SLURM, COMPOSE])


def test_machine_without_slurm_is_reported(repository: Path) -> None:
    commit(repository, "tests/slurm/test_run.py")
    assert due(repository, MISSING="not installed: slurmd") == (0, [f"{NO_SLURM} not installed: slurmd ===="])


def test_tests_of_slurm_are_reported_without_enough_time(repository: Path) -> None:
    commit(repository, "tests/slurm/test_run.py")
    status, (line,) = due(repository, left=249)
    assert status == 0
    assert re.fullmatch(rf"{NO_SLURM} 24\d s are left, and it takes up to 250 s ====", line)


def test_branch_is_compared_with_its_merge_base(repository: Path) -> None:
    git(repository, "update-ref", "refs/remotes/origin/main", "HEAD")
    commit(repository, "docker/redis.sh")
    commit(repository, "README.md", 21)
    assert due(repository) == (0, [COMPOSE])


def test_everything_is_due_in_a_shallow_clone(history: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shallow"
    git(tmp_path, "clone", "--depth", "3", f"file://{history}", str(folder))
    add_programs(folder)
    assert due(folder) == (0, [SLURM, COMPOSE])


def test_everything_is_due_with_fewer_than_20_commits(tmp_path: Path) -> None:
    git(tmp_path, "init", "--initial-branch", "main")
    commit(tmp_path, "README.md", 2)
    add_programs(tmp_path)
    assert due(tmp_path) == (0, [SLURM, COMPOSE])


@pytest.mark.parametrize(
    ("env", "status", "lines"),
    [
        ({"PREPARE_STATUS": "75", "REASON": "no network"}, 0, [f"{NOT_RUN} no network ===="]),
        ({"PREPARE_STATUS": "124"}, 0, [f"{NOT_RUN} no container within 600 s ===="]),
        ({"PREPARE_STATUS": "1"}, 1, []),
    ],
    ids=["no images", "deadline", "broken check"],
)
def test_machine_without_containers_is_reported(
    repository: Path, env: dict[str, str], status: int, lines: list[str]
) -> None:
    commit(repository, "docker/redis.sh")
    assert due(repository, **env) == (status, lines)


def test_compose_tests_are_reported_without_enough_time(repository: Path) -> None:
    commit(repository, "docker/redis.sh")
    status, (line,) = due(repository, left=699)
    assert status == 0
    assert re.fullmatch(rf"{NOT_RUN} 69\d s are left, and it takes up to 700 s ====", line)


def test_compose_tests_fail_at_the_deadline(repository: Path) -> None:
    commit(repository, "docker/redis.sh")
    script = repository / SCRIPT
    script.write_text(script.read_text().replace("compose_limit_s=1200", "compose_limit_s=1"))
    ended = "==== FAILED: tools/test_compose.sh --fast took longer than 1 s ===="
    assert due(repository, SLEEP="30") == (124, [COMPOSE, ended])

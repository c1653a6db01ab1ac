"""A login node with fake programs of Slurm, and the allocation of a run on it."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.stories import a_run, open_store

from tipcflow.domain import Cluster, Node, SlurmSource, SlurmStep
from tipcflow.execute.allocation import client, hold
from tipcflow.store import Store
from tipcflow.transport.connect import connect

NAME = "tipc-mine-1"
# Jobs are lines of the file `jobs` in the form of squeue; programs log their words in `log`.
SQUEUE = """
case "$*" in
    *--format=%i|*"--format=%i "*) sed -n 's/|PENDING.*//p' jobs ;;
    *--name=*) name=${*##*--name=}; name=${name%% *}; grep "|$name\\$" jobs ;;
    *--jobs=*) job=${*##*--jobs=}; job=${job%% *}; grep "^$job|" jobs ;;
    *) cat jobs ;;
esac
exit 0
"""
SBATCH = """
cat > script
name=${*##*--job-name=}; name=${name%% *}
id=$(($(grep -c . jobs) + 1))
echo "$id|PENDING|Resources|2026-11-26T09:46:0$id|2026-11-26T10:16:34||$name" >> jobs
echo $id
"""
SCANCEL = """
case "$*" in
    *--name=*) name=${*##*--name=}; name=${name%% *}; sed -i "/|$name\\$/s/|[A-Z]*|/|CANCELLED|/" jobs ;;
    *) for last; do :; done; sed -i "/^$last|/s/|[A-Z]*|/|CANCELLED|/" jobs ;;
esac
"""
SCONTROL = """
case "$*" in
    *'-o show node n[3-4]') ;;
    *) exit 1 ;;
esac
for n in 3 4; do echo "NodeName=n$n Arch=x NodeAddr=127.0.0.$n Port=6818 State=ALLOCATED"; done
"""


class Login:
    """The login node's programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "jobs").touch()
        for name, script in (("squeue", SQUEUE), ("sbatch", SBATCH), ("scancel", SCANCEL), ("scontrol", SCONTROL)):
            self.program(name, script)
        self.program("srun", "exit 0")

    def program(self, name: str, script: str) -> None:
        """Replace a program."""
        path = self.folder / name
        path.write_text(f'#!/bin/sh\ncd {self.folder}\necho "{name} $*" | head -n 1 >> log\n{script}\n')
        path.chmod(0o755)

    def jobs(self) -> list[str]:
        """Return the jobs as `ID STATE`."""
        return [" ".join(line.split("|")[:2]) for line in (self.folder / "jobs").read_text().splitlines()]

    def add(self, *lines: str) -> None:
        """Add jobs."""
        with (self.folder / "jobs").open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def become(self, job: str, state: str, nodelist: str = "") -> None:
        """Change the state of a job."""
        lines = []
        for line in (self.folder / "jobs").read_text().splitlines():
            fields = line.split("|")
            lines.append(
                "|".join([job, state, "None", *fields[3:5], nodelist, fields[6]]) if fields[0] == job else line
            )
        (self.folder / "jobs").write_text("".join(f"{line}\n" for line in lines))

    def submissions(self) -> int:
        """Return how often sbatch was called."""
        return (self.folder / "log").read_text().count("sbatch --parsable")


@pytest.fixture
def login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Login:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(client, "APPEARS_S", 0.2)
    monkeypatch.setattr(client, "POLL_S", 0.05)
    monkeypatch.setattr(hold, "POLL_EVERY_S", 0.05)
    monkeypatch.setattr(hold, "RETRY_EVERY_S", 0.05)
    monkeypatch.setattr(hold, "RELEASE_S", 0.5)
    return Login(tmp_path / "bin")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "tipcflow.db") as made:
        made.runs.create(a_run("mine"))
        yield made


CLUSTER = Cluster(
    name="hpc",
    kind="slurm",
    slurm=SlurmSource(
        local=True,
        partition="ci",
        time_limit_minutes=30,
        workspace="/scratch/{node}",
        cache="/scratch/{node}/cache",
    ),
    nodes=tuple(
        Node(
            name=f"slurm-{n}",
            address=f"slurm-{n}",
            python="/p",
            workspace="/scratch/{node}",
            slurm=SlurmStep(local=True),
        )
        for n in (1, 2, 3)
    ),
)
Make = Callable[..., hold.Allocation]


@pytest.fixture
def allocation(store: Store, login: Login) -> Make:
    return lambda **more: hold.Allocation(store, "mine", CLUSTER, connect, nodes=2, **more)

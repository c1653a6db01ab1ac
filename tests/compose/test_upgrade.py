"""Upgrade to images of another tag while a chain trains, both ways back, and a new major version of PostgreSQL.

The steps are those of docs/operations.md. The deployment of the other files does not run.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.compose.conftest import Note, Timed
from tests.support.certify import ROOT
from tests.support.compose import next_postgres
from tests.support.compose.deployment import LONG, Deployment
from tests.support.compose.engine import KEPT, Engine
from tests.support.installed.operations_page import blocks, inline
from tests.support.programs import missing

from tipcflow.store.migrate import head

# The last commit with the old schema.
COMMIT, OLD_SCHEMA = "2121bffa", "0015"
OLD, NEW = "of-the-old-version", "of-the-new-version"


class Versions(Deployment):
    """A deployment of the old version in a clone with two commits: that version and this one.

    Attributes:
        commits: the IDs of the commits by tag.
    """

    def __init__(self, engine: Engine, folder: Path) -> None:
        super().__init__(engine, folder, "versions")
        self.commits: dict[str, str] = {}

    def clone(self) -> None:
        """Make the commits, and check out the old version."""
        self._git("init", "--quiet")
        archive = ["git", "-C", ROOT, "archive", COMMIT]
        packed = subprocess.run(archive, check=True, capture_output=True, timeout=60).stdout
        subprocess.run(["tar", "--extract"], cwd=self.folder, input=packed, check=True, timeout=60)
        self.prepare()
        self._commit(OLD)
        self._git("rm", "-r", "--quiet", ".")
        self.checkout()
        self._commit(NEW)
        self._git("checkout", "--quiet", "--detach", self.commits[OLD])

    def follow(self, steps: str) -> str:
        steps = steps.replace("OLD_COMMIT", self.commits[OLD]).replace("COMMIT", self.commits[NEW])
        return super().follow(steps.replace("TAG=OLD_TAG", f"TAG={OLD}").replace("TAG=NEW", f"TAG={NEW}"))

    def schema(self) -> str:
        """The schema of the metrics database, as a worker shows it."""
        return self.tipcflow("db", "current")

    def _commit(self, tag: str) -> None:
        self._git("add", "--all")
        self._git("-c", "user.name=tests", "-c", "user.email=tests@example.com", "commit", "--quiet", "-m", tag)
        self.commits[tag] = self._git("rev-parse", "HEAD")

    def _git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=self.folder, check=True, capture_output=True, text=True, timeout=60
        )
        return done.stdout.strip()


@pytest.fixture(scope="module")
def versions(engine: Engine, images: dict[str, str], timed: Timed) -> Iterator[Versions]:
    """The old version, with a chain that passed."""
    if subprocess.run(["git", "-C", ROOT, "cat-file", "-e", COMMIT], check=False).returncode:
        missing(f"this clone does not have commit {COMMIT}")
    folder = KEPT / "versions" / "checkout"
    shutil.rmtree(folder.parent, ignore_errors=True)
    folder.mkdir(parents=True)
    made = Versions(engine, folder)
    made.clone()
    made.configure(**images, APT_PACKAGES="unzip", TIPCFLOW_TAG=OLD)
    with timed("build of the old version"):
        made.compose("build", timeout=1100)
    made.compose("down", "--volumes", "--timeout", "10", check=False)
    try:
        made.up()
        made.until_healthy()
        made.certify()
        assert OLD_SCHEMA in made.schema()
        yield made
    finally:
        (KEPT / "versions.log").write_text(made.compose("logs", "--no-color", "--timestamps", check=False))
        made.compose("down", "--volumes", "--timeout", "10", timeout=300, check=False)


def test_upgrade_loses_no_run(versions: Versions, engine: Engine, note: Note) -> None:
    before = versions.verdicts()
    backup = next(block for block in blocks("Back up and restore") if ">objects.tar.gz" in block)
    versions.follow(backup)
    build, secrets = blocks("Upgrade")[:2]
    versions.follow(build)
    versions.follow(secrets)
    # The old version continues until the last step.
    versions.certify()
    with versions.in_training(params=LONG):
        versions.follow(inline("docker-compose run --rm init"))
        versions.follow("docker-compose up -d")
    note("chain, upgrade in its training", versions.last_s)
    versions.until_healthy()
    assert head() in versions.schema()
    # The other rows are about local nodes, which a container lacks.
    shown = versions.inside("worker", "tipcflow", "doctor", check=False)
    for row in ("database", "object store"):
        assert re.search(rf"(?m)\b{row}\s+ok ", shown), shown
    versions.certify()
    assert versions.verdicts()[-len(before) :] == before
    assert engine.run("images", "--quiet", f"tipcflow-airflow:{OLD}")


def test_downgrade_keeps_runs(versions: Versions) -> None:
    before = versions.verdicts()
    _, steps, _ = blocks("Downgrade")
    versions.follow(steps.replace("downgrade 0013", f"downgrade {OLD_SCHEMA}"))
    versions.until_healthy()
    assert OLD_SCHEMA in versions.schema()
    assert versions.verdicts() == before
    versions.certify()


def test_old_version_restores_its_backup(versions: Versions) -> None:
    later = versions.verdicts()
    # Only the databases are of the new version.
    versions.follow(f"TIPCFLOW_TAG={NEW} docker-compose run --rm -T init")
    *_, empty = blocks("Downgrade")
    versions.follow(empty)
    steps = blocks("Back up and restore")
    for word in ("postgres pg_restore", "<objects.tar.gz"):
        versions.follow(next(block for block in steps if word in block))
    versions.follow("docker-compose up -d")
    versions.until_healthy()
    assert OLD_SCHEMA in versions.schema()
    assert versions.verdicts() == later[-1:]
    versions.verify_everywhere(later[-1][0])
    versions.certify()


def test_new_major_version_of_postgres(versions: Versions, engine: Engine, images: dict[str, str]) -> None:
    new = next_postgres.image(engine)
    versions.follow(
        f"git checkout {versions.commits[NEW]} && sed -i 's/^TIPCFLOW_TAG=.*/TIPCFLOW_TAG={NEW}/' .env"
    )
    versions.follow("docker-compose up -d")
    before = versions.verdicts()
    for block in blocks("Major version of PostgreSQL"):
        steps = block.replace("sudo ", "").replace("PROJECT", versions.project)
        steps = steps.replace("postgres:17", images["POSTGRES_IMAGE"]).replace("postgres:18", new)
        versions.follow(steps)
    versions.until_healthy()
    ((version,),) = versions.sql("SHOW server_version")
    assert version.startswith(next_postgres.VERSION)
    assert versions.verdicts() == before
    versions.certify()

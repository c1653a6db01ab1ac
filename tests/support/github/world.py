"""Pull requests of the toy suite: a repository with commits, its configuration, and DAG runs in memory."""

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml
from tests.support.certify import ROOT
from tests.support.github.api import GitHub

from tipcflow.config.repository import Repositories, Repository
from tipcflow.domain import InfraError, Run, Status
from tipcflow.github.client import Client
from tipcflow.github.client.connect import api
from tipcflow.github.trust import RunKey
from tipcflow.store import Store
from tipcflow_operators.pull_request.start import Runs
from tipcflow_operators.pull_request.work import Work

CHAIN = "toy/toy/train_infer_python"
PARAMS = "test_tipc/configs/toy/train_infer_python.txt"
SIX = tuple(letter * 40 for letter in "abcdef")


def git(folder: Path, *words: str) -> str:
    """Output of a git command."""
    name = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", "-C", str(folder), *name, *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def make_repository(folder: Path) -> str:
    """The toy suite as a git repository; returns its commit."""
    git(folder, "init", "-q")
    return commit(folder, {})


def commit(folder: Path, files: Mapping[str, str]) -> str:
    """A commit that writes these files; returns its hash."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "change")
    return git(folder, "rev-parse", "HEAD")


def make_configs(folder: Path, suite: Path, names: tuple[str, ...], **repository: Any) -> None:
    """configs/ with the toy suite, its chains, and one repository."""
    for kind in ("suites", "clusters", "policies", "repositories"):
        (folder / kind).mkdir(parents=True, exist_ok=True)
    toy = {"name": "toy", "folder": str(suite), "dialects": ["models/template"]}
    (folder / "suites" / "toy.yaml").write_text(yaml.safe_dump(toy))
    for kind in ("clusters/local", "policies/pr"):
        (folder / f"{kind}.yaml").touch()
    for name in names:
        chain = folder / "chains" / "toy" / "toy" / f"{name}.txt"
        chain.parent.mkdir(parents=True, exist_ok=True)
        chain.write_text((suite / PARAMS).read_text())
    own = {"name": "o/r", "connection": "app", "suite": "toy", "cluster": "local", **repository}
    (folder / "repositories" / "r.yaml").write_text(yaml.safe_dump(own))


@dataclass
class DagRuns:
    """Airflow's DAG runs: (dag id, run id) -> conf. `stopped` are marked as failed."""

    store: Store
    started: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    stopped: list[tuple[str, str]] = field(default_factory=list)
    starts: int = 0
    away: bool = False

    def runs(self) -> Runs:
        return Runs(start=self.start, stop=self.stop, active=self.active)

    def start(self, dag_id: str, run_id: str, run_after: datetime, conf: Mapping[str, Any], note: str) -> None:
        if self.away:
            raise InfraError("Airflow does not respond")
        self.starts += 1
        assert self.started.setdefault((dag_id, run_id), dict(conf)) == conf

    def stop(self, dag_id: str, run_id: str) -> None:
        if self.away:
            raise InfraError("Airflow does not respond")
        self.stopped.append((dag_id, run_id))

    def active(self, dag_id: str, run_id: str) -> bool:
        return (dag_id, run_id) in self.started and (dag_id, run_id) not in self.stopped


class World:
    """A repository on the stand-in, its pull request 7, and everything that handles its deliveries."""

    def __init__(self, folder: Path, url: str, github: GitHub, store: Store, **repository: Any) -> None:
        self.folder, self.url, self.github, self.store = folder, url, github, store
        self.suite, self.configs = folder / "suite", folder / "configs"
        subprocess.run(["cp", "-r", str(ROOT / "tests" / "support" / "toy_suite"), str(self.suite)], check=True)
        self.base = make_repository(self.suite)
        make_configs(self.configs, self.suite, ("train_infer_python",), **repository)
        self.repository = Repository.model_validate(
            yaml.safe_load((self.configs / "repositories" / "r.yaml").read_text())
        )
        self.dag_runs = DagRuns(store)
        self.lines: list[str] = []
        self.deliveries = 0
        github.roles = {"maintainer": "write", "author": "read"}
        self.sha = ""
        self.push("ppcls/change.py")

    def push(self, path: str = "train.py", *, fork: bool = False, text: str = "# changed\n") -> str:
        """A new head of the pull request that changes one file; returns its hash."""
        self.sha = commit(self.suite, {path: text + f"# {self.deliveries} {self.sha}\n"})
        self.github.files = [{"filename": path}]
        self.github.pull = {
            "number": 7,
            "state": "open",
            "draft": False,
            "changed_files": 1,
            "user": {"login": "author"},
            "labels": [],
            "head": {"sha": self.sha, "repo": {"full_name": "fork/r" if fork else "o/r"}},
            "base": {"ref": "main"},
        }
        return self.sha

    def deliver(self, event: str, **body: Any) -> bool:
        """A stored delivery."""
        self.deliveries += 1
        common = {"repository": "o/r", "sender": "author", "sender_type": "User"}
        return self.store.outbox.add(
            delivery=f"delivery-{self.deliveries:04}",
            body_sha256=f"{self.deliveries:064x}",
            connection="app",
            repository="o/r",
            event=event,
            body={**common, **body},
        )

    def pull_request(self, action: str, **body: Any) -> bool:
        """Event pull_request of the current head."""
        pull = self.github.pull
        pull["state"] = "closed" if action == "closed" else "open"
        return self.deliver(
            "pull_request",
            **{
                "action": action,
                "number": 7,
                "head_sha": pull["head"]["sha"],
                "head_repository": pull["head"]["repo"]["full_name"],
                "base_ref": "main",
                "base_sha": self.base,
                "author": "author",
                **body,
            },
        )

    def comment(self, text: str, *, sender: str = "maintainer") -> bool:
        """A comment on the pull request."""
        return self.deliver(
            "issue_comment",
            action="created",
            number=7,
            pull_request="https://github.test/pulls/7",
            author="author",
            state="open",
            comment=1000 + self.deliveries,
            body=text,
            sender=sender,
        )

    def work(self) -> dict[str, int]:
        """One pass."""
        return self._work().once()

    def settle(self) -> None:
        """Passes until nothing is left to do."""
        for _ in range(5):
            self.make_due()
            self.work()

    def _work(self) -> Work:
        return Work(
            store=self.store,
            repositories=Repositories({"r": self.repository}),
            clients=lambda one: Client(api(self.url, None, between_writes_s=0), one),
            runs=self.dag_runs.runs(),
            config_dir=self.configs,
            cache=self.folder / "cache",
            site="https://airflow.test",
            report=self.lines.append,
        )

    def make_due(self) -> None:
        """Let all pauses of messages and deliveries pass."""
        from sqlalchemy import text

        with self.store.database.write() as connection:
            connection.execute(text("UPDATE messages SET due_at = 0"))
            connection.execute(text("UPDATE outbox SET taken_until = 0"))

    def run_id(self, attempt: int = 1, *, sha: str = "", number: int = 7) -> str:
        """Airflow's run id of an attempt."""
        return RunKey("o/r", number, sha or self.sha, attempt).run_id

    def run_of(self, attempt: int = 1, *, sha: str = "", number: int = 7) -> str:
        """tipcflow's run id of an attempt's only chain."""
        found = self.store.pulls.get(("o/r", number, sha or self.sha, attempt))
        assert found
        return found.chains[0].run

    def begin(self, attempt: int = 1, **which: Any) -> str:
        """The chain's run exists, as after task resolve; returns its id."""
        run = self.run_of(attempt, **which)
        self.store.runs.create(
            Run(
                id=run,
                chain=CHAIN,
                suite="toy",
                model="toy",
                mode="lite_train_lite_infer",
                cluster="local",
                trigger="github",
                created_at=self.store.now(),
            )
        )
        return run

    def end(self, status: Status = Status.PASS, reason: str = "", attempt: int = 1, **which: Any) -> None:
        """The chain's run has this verdict."""
        run = self.begin(attempt, **which)
        self.store.runs.finish(run, status, reason, self.store.now())

    def check(self, attempt: int = 1, *, sha: str = "", number: int = 7) -> dict[str, Any]:
        """The check run that GitHub shows for an attempt."""
        mine = [
            one
            for one in self.github.checks
            if one["head_sha"] == (sha or self.sha) and one["external_id"] == f"{number}/{attempt}"
        ]
        assert len(mine) == 1, [(one["head_sha"][:8], one["external_id"]) for one in self.github.checks]
        return mine[0]

"""`tipcflow run` as a user types it, with a home, configs and a suite of its own."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Run
from tipcflow.store import Store

ROOT = Path(__file__).resolve().parents[2]
TIPCFLOW = Path(sys.executable).with_name("tipcflow")
PARAMS = "test_tipc/configs/toy/train_infer_python.txt"
MODE = "lite_train_lite_infer"
DEADLINE_S = 200


@dataclass(frozen=True)
class Outcome:
    """What a user of the command line gets, and what the database holds."""

    code: int
    stdout: str
    stderr: str
    run: Run

    @property
    def output(self) -> str:
        """Everything that was printed, blanks collapsed: terminals wrap."""
        return " ".join((self.stdout + self.stderr).split())


class Nodes(Protocol):
    """Nodes that write their cluster file."""

    def write_cluster_file(self, path: Path) -> Path: ...


class Site:
    """A user's installation: TIPCFLOW_HOME, configs/, a copy of the toy suite, a cluster file of living nodes."""

    def __init__(self, folder: Path, nodes: Nodes, *, database_url: str = "") -> None:
        self._nodes = nodes
        self.database_url = database_url
        self.home = folder / "home"
        self.suite = folder / "toy"
        self.configs = folder / "configs"
        shutil.copytree(ROOT / "tests" / "support" / "toy_suite", self.suite)
        shutil.copytree(ROOT / "configs" / "policies", self.configs / "policies")
        (self.configs / "suites").mkdir()
        (self.configs / "clusters").mkdir()
        self.configure_suite()
        self.cluster_file = nodes.write_cluster_file(self.configs / "clusters" / "local.yaml")

    @property
    def nodes(self) -> LocalNodes:
        """The nodes of an inventory."""
        assert isinstance(self._nodes, LocalNodes)
        return self._nodes

    @nodes.setter
    def nodes(self, nodes: LocalNodes) -> None:
        self._nodes = nodes

    @property
    def env(self) -> dict[str, str]:
        """The environment of every command."""
        chosen = {"TIPCFLOW_HOME": str(self.home), "TIPCFLOW_CONFIG_DIR": str(self.configs)}
        return {**os.environ, **chosen, "TIPCFLOW_DATABASE_URL": self.database_url}

    @property
    def suite_file(self) -> Path:
        """The suite's configuration."""
        return self.configs / "suites" / "toy.yaml"

    @property
    def policy_file(self) -> Path:
        """The policy of a run without --policy."""
        return self.configs / "policies" / "pr.yaml"

    def configure_suite(self, **settings: Any) -> None:
        """Write the suite's configuration."""
        content = {
            "name": "toy",
            "folder": str(self.suite),
            "dialects": ["models/template"],
            "seed_argument": "--seed={seed}",
            "deterministic": True,
            "framework": "",
            **settings,
        }
        self.suite_file.write_text(yaml.safe_dump(content))

    def configure_policy(self, **settings: Any) -> None:
        """Change keys of the policy."""
        path = self.policy_file
        path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **settings}))

    def configure_node(self, name: str, **settings: Any) -> None:
        """Change a node of the cluster file; `ssh__x` changes a key of its `ssh`."""
        content = yaml.safe_load(self.cluster_file.read_text())
        node = next(node for node in content["nodes"] if node["name"] == name)
        for key, value in settings.items():
            if key.startswith("ssh__"):
                node["ssh"][key.removeprefix("ssh__")] = value
            else:
                node[key] = value
        self.cluster_file.write_text(yaml.safe_dump(content))

    def edit_params(self, old: str, new: str, *, count: int = 1) -> None:
        """Replace text of the params file that must be there."""
        path = self.suite / PARAMS
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, count))

    def command(self, *extra: str, params: str = PARAMS, **options: str) -> list[str]:
        """The command line of `tipcflow run`."""
        chosen = {"suite": "toy", "mode": MODE, "cluster": "local", **options}
        words = [part for key, value in chosen.items() for part in (f"--{key.replace('_', '-')}", value)]
        return [str(TIPCFLOW), "run", params, *words, *extra]

    def run(self, *extra: str, params: str = PARAMS, **options: str) -> Outcome:
        """Run to the end."""
        command = self.command(*extra, params=params, **options)
        done = subprocess.run(
            command, env=self.env, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        return Outcome(done.returncode, done.stdout, done.stderr, self.latest())

    def run_and(
        self, when: Callable[[], bool], do: Callable[[subprocess.Popen[str]], None], *extra: str
    ) -> Outcome:
        """Start a run, do something to it as soon as `when` is true, and wait for its end."""
        process = subprocess.Popen(
            self.command(*extra), env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            wait_for(when, what="the run to get there", also=lambda: process.poll() is None)
            do(process)
            stdout, stderr = process.communicate(timeout=DEADLINE_S)
        finally:
            process.kill()
        return Outcome(process.returncode, stdout, stderr, self.latest())

    def interrupt(self, when: Callable[[], bool], number: signal.Signals = signal.SIGINT) -> Outcome:
        """Start a run and send it a signal as soon as `when` is true."""
        return self.run_and(when, lambda process: process.send_signal(number))

    def latest(self) -> Run:
        """The newest run in the database."""
        with self.store() as store:
            return store.runs.newest(limit=1)[0]

    def store(self) -> Store:
        """The site's database."""
        return Store.open(self.database_url or f"sqlite:///{self.home / 'tipcflow.db'}")

    def show(self, run: Run) -> str:
        """The output of `tipcflow show`, whitespace collapsed."""
        done = subprocess.run(
            [str(TIPCFLOW), "show", run.id], env=self.env, capture_output=True, text=True, timeout=60, check=True
        )
        return " ".join(done.stdout.split())

    def facts(self, run: Run) -> dict[str, Any]:
        """`tipcflow show --json`."""
        done = subprocess.run(
            [str(TIPCFLOW), "show", run.id, "--json"],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def training_runs_on(self, node: str) -> bool:
        """Whether a worker of the toy suite's training is there."""
        return any("train.py" in process.cmdline for process in self.nodes.processes(node))

    def left_behind(self) -> list[str]:
        """Remaining processes of ours on the nodes, and leases; empty after a clean end."""
        left = [
            f"{node.name}: {process.cmdline}"
            for node in self.nodes.cluster.nodes
            for process in self.nodes.processes(node.name)
        ]
        with self.store() as store:
            left += [f"lease: {lease.run} {lease.node}/{lease.slot}" for lease in store.leases.all()]
        return left


def wait_for(
    when: Callable[[], bool], *, what: str, seconds: float = 150, also: Callable[[], bool] = lambda: True
) -> None:
    """Wait until `when` is true; fails at the deadline, or when `also` is not true any more."""
    deadline = time.monotonic() + seconds
    while not when():
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        assert also(), f"ended while waiting for {what}"
        time.sleep(0.02)

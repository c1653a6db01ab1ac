"""A deployment of docker-compose.yaml from a copy of the checkout, with the toy suite."""

import base64
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import yaml
from tests.support.certify import ROOT
from tests.support.compose import versions
from tests.support.compose.engine import Engine
from tests.support.compose.local import free_port
from tests.support.installed.operations_page import shell

from tipcflow.airflow_api import Airflow
from tipcflow.domain.run.names import DagId

# Params files of the toy suite: trainings of a second, one minute and two, and one whose DAG an operator pauses.
FAST, SLOW, LONG, PAUSED = "train_infer_python", "train_slow", "train_long", "train_paused"
_STEP_S = {SLOW: 6, LONG: 12}
_BUDGET_MIN = 60
# Of the nodes; not the default, as next to another deployment.
NETWORK = "10.213.78"
# A cluster of the same nodes, whose connections are in Airflow's database, as those of nodes of one's own.
LAB, LAB_CONNECTION = "lab", "lab_node_"
SCALE = {"worker": 2, "scheduler": 2, "triggerer": 2}
AIRFLOW = ("api-server", "scheduler", "dag-processor", "triggerer", "worker")
_TIPCFLOW = Path(sys.executable).with_name("tipcflow")
_AUTHORITIES = Path("/usr/local/share/ca-certificates")


class Deployment:
    """The containers of one or more compose files, from a folder of their own.

    Attributes:
        folder: the checkout.
        project: prefix of all names of the engine.
        port: of Airflow on this machine.
        program: the docker-compose in use.
        last_s: seconds of the last chain that ran `in_training`, from `tipcflow trigger` to its end.
    """

    def __init__(self, engine: Engine, folder: Path, project: str, *files: str) -> None:
        self.engine, self.folder, self.project = engine, folder, project
        self.files = files or ("docker-compose.yaml",)
        self.port = free_port()
        self.program = versions.command()
        self.last_s = 0.0
        self._connections: dict[str, dict[str, Any]] = {}

    def checkout(self) -> None:
        """Copy what git tracks, and prepare it."""
        names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
        for name in names.stdout.splitlines():
            if not name.startswith(("tests/", "benchmarks/", "docs/")) and (ROOT / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, self.folder / name)
        self.prepare()

    def prepare(self) -> None:
        """Add the toy suite to the checkout, leave out Paddle, and set modes as with umask 077."""
        suite = self.folder / "examples" / "toy"
        shutil.copytree(ROOT / "tests/support/toy_suite", suite, ignore=shutil.ignore_patterns("__pycache__"))
        params = suite / "test_tipc/configs/toy"
        text = (params / f"{FAST}.txt").read_text()
        for name, step_s in _STEP_S.items():
            slow = text.replace("norm_train:train.py", f"norm_train:train.py --step-time={step_s}")
            (params / f"{name}.txt").write_text(slow)
        (params / f"{PAUSED}.txt").write_text(text)
        text = (self.folder / "configs/clusters/compose.yaml").read_text()
        lab = text.replace("name: compose", f"name: {LAB}").replace("tipcflow_node_", LAB_CONNECTION)
        lab = lab.replace("${NODE_NETWORK:-10.213.77}", NETWORK)
        (self.folder / f"configs/clusters/{LAB}.yaml").write_text(lab)
        # Components that start again take minutes on a busy machine.
        policy = self.folder / "configs/policies/pr.yaml"
        policy.write_text(policy.read_text().replace("budget_minutes: 10", f"budget_minutes: {_BUDGET_MIN}", 1))
        content = {"name": "toy", "folder": "examples/toy", "dialects": ["models/template"], "framework": ""}
        content |= {"seed_argument": "--seed={seed}", "deterministic": True}
        (self.folder / "configs/suites/toy.yaml").write_text(yaml.safe_dump(content))
        env = {**os.environ, "TIPCFLOW_CONFIG_DIR": str(self.folder / "configs")}
        command = [_TIPCFLOW, "import", suite, "--suite", "toy"]
        subprocess.run(command, env=env, check=True, capture_output=True, timeout=120)
        (self.folder / "requirements/node-cpu.txt").write_text("# The toy suite needs no packages.\n")
        # docker/env.sh opens what containers read.
        subprocess.run(["chmod", "-R", "go-rwx", self.folder], check=True)

    def configure(self, **settings: str) -> None:
        """Write secrets and settings."""
        words = {"NODE_NETWORK": NETWORK, "AIRFLOW_PORT": str(self.port), **settings}
        if certificates := sorted(_AUTHORITIES.glob("*.crt")):
            text = "".join(path.read_text() for path in certificates)
            words["CA_CERTIFICATE"] = base64.b64encode(text.encode()).decode()
        file = self.folder / ".env"
        file.touch(mode=0o600)
        file.write_text("".join(f"{name}={value}\n" for name, value in words.items()))
        subprocess.run([self.folder / "docker/env.sh"], check=True, capture_output=True, timeout=60)

    def set_secret(self, name: str, text: str) -> None:
        """Replace the file of a secret."""
        path = self.folder / ".secrets" / name
        path.unlink()
        path.write_text(text)
        path.chmod(0o444)

    def secret(self, name: str) -> str:
        return (self.folder / ".secrets" / name).read_text().strip()

    def compose(self, *words: str, timeout: float = 300, check: bool = True) -> str:
        """Run docker-compose with the demo nodes; returns its output."""
        files = [part for file in self.files for part in ("--file", file)]
        command = [*self.program, *files, "--project-name", self.project, "--profile", "demo", *words]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.engine.env,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert not check or done.returncode == 0, (
            f"{' '.join(command)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        )
        return done.stdout

    def up(self, *options: str, scale: Mapping[str, int] | None = None) -> None:
        """Start all services; returns when compose does."""
        chosen = [f"--scale={name}={count}" for name, count in (scale or {}).items()]
        self.compose("up", "--detach", *options, *chosen, timeout=900)

    def follow(self, steps: str) -> str:
        """Run steps of docs/operations.md in the checkout; returns their output."""
        env = {**self.engine.env, "COMPOSE_PROJECT_NAME": self.project, "COMPOSE_FILE": ":".join(self.files)}
        text = steps.replace("docker-compose ", f"{shlex.join(self.program)} ")
        return shell(text, env, cwd=self.folder, seconds=900)

    def set(self, **settings: str) -> None:
        """Append settings to .env."""
        with (self.folder / ".env").open("a") as file:
            file.writelines(f"{name}={value}\n" for name, value in settings.items())

    def image(self, name: str) -> str:
        """An image with the tag that docker/env.sh has chosen."""
        lines = (self.folder / ".env").read_text().splitlines()
        return f"{name}:{next(line for line in lines if line.startswith('TIPCFLOW_TAG=')).partition('=')[2]}"

    def leftovers(self) -> list[str]:
        """IDs of what the engine still has of this deployment."""
        label = f"label=com.docker.compose.project={self.project}"
        kinds: dict[str, list[str]] = {"container": ["--all"], "volume": [], "network": []}
        shown = [self.engine.run(kind, "ls", "--quiet", *more, "--filter", label) for kind, more in kinds.items()]
        return " ".join(shown).split()

    def containers(self, service: str = "") -> list[str]:
        """IDs of the containers, of one service or of all."""
        # docker-compose takes seconds for this.
        labels = {"project": self.project, "oneoff": "False", **({"service": service} if service else {})}
        filters = [f"--filter=label=com.docker.compose.{name}={value}" for name, value in labels.items()]
        shown = self.engine.run("ps", "--all", "--no-trunc", "--format", "{{.Names}} {{.ID}}", *filters)
        return [line.split()[1] for line in sorted(shown.splitlines())]

    def health(self, container: str) -> str:
        template = "{{if .State.Health}}{{.State.Health.Status}}{{else}}{{.State.Status}}{{end}}"
        return self.engine.run("inspect", "--format", template, container)

    def until(self, condition: Callable[[], Any], what: str, seconds: float = 240) -> Any:
        end = time.monotonic() + seconds
        while not (found := condition()):
            assert time.monotonic() < end, f"waited {seconds:g} s for {what}\n{self.compose('ps')}"
            time.sleep(0.5)
        return found

    def until_healthy(self, *services: str) -> None:
        for service in services or AIRFLOW:
            for container in self.containers(service):
                self.until(lambda one=container: self.health(one) == "healthy", f"a healthy {service}")

    def logs(self, container: str) -> str:
        """What a container wrote to stdout."""
        return self.engine.run("logs", container)

    def environments(self, container: str) -> list[str]:
        """The environments of all processes of a container, that of its first process first.

        Read from outside: without capabilities, root in a container cannot read those of other users.
        """
        first = self.engine.run("inspect", "--format", "{{.State.Pid}}", container)
        others = self.engine.run("top", container, "-o", "pid").split()[1:]
        texts = []
        for pid in [first, *(each for each in others if each != first)]:
            with suppress(FileNotFoundError, ProcessLookupError):
                texts.append(Path(f"/proc/{pid}/environ").read_text(errors="replace"))
        return texts

    @contextmanager
    def hung(self, container: str) -> Iterator[None]:
        """Stop the component of a container, but not the processes that it started."""
        first = self.engine.run("inspect", "--format", "{{.State.Pid}}", container)
        rows = [line.split() for line in self.engine.run("top", container, "-o", "pid,ppid").splitlines()[1:]]
        (component,) = [int(pid) for pid, parent in rows if parent == first]
        os.kill(component, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(component, signal.SIGCONT)

    def kill(self, service: str) -> None:
        """End all containers of a service with SIGKILL from outside; the engine starts them again."""
        for container in self.containers(service):
            os.kill(int(self.engine.run("inspect", "--format", "{{.State.Pid}}", container)), 9)

    def airflow(self, user: str) -> Airflow:
        """A client with the login of `admin` or `ci`."""
        return Airflow(
            f"http://127.0.0.1:{self.port}", user=user, password=self.secret(f"airflow_{user}_password")
        )

    @contextmanager
    def api(self, user: str) -> Iterator[httpx.Client]:
        """A client of the REST API that has logged in as `admin` or `ci`."""
        login = {"username": user, "password": self.secret(f"airflow_{user}_password")}
        with httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=60) as client:
            token = client.post("/auth/token", json=login).json()["access_token"]
            client.headers["Authorization"] = f"Bearer {token}"
            yield client

    def add_connections(self, *names: str) -> None:
        """Store the connections of the demo nodes in Airflow's database; names end with their numbers."""
        known = json.loads(self.inside("triggerer", "cat", "/var/lib/airflow/connections.json"))
        for name in names:
            self._connections[name] = known[f"tipcflow_node_{name[-1]}"]
            with self.api("admin") as client:
                # From an earlier test, perhaps with keys that are no longer in use.
                client.delete(f"/api/v2/connections/{name}")
                client.post("/api/v2/connections", json=self._connection(name)).raise_for_status()

    def change_connections(self, *names: str, **extra: str) -> None:
        """Replace a part of the extra field of connections."""
        for name in names:
            self._connections[name]["extra"] |= extra
            with self.api("admin") as client:
                client.patch(f"/api/v2/connections/{name}", json=self._connection(name)).raise_for_status()

    def _connection(self, name: str) -> dict[str, Any]:
        known = self._connections[name]
        return {**known, "connection_id": name, "extra": json.dumps(known["extra"])}

    @staticmethod
    def dag(params: str) -> str:
        """The DAG of a chain of the toy suite."""
        return str(DagId.of_chain(f"toy/toy/{params}"))

    def trigger(self, params: str, *more: str, cluster: str = "compose") -> "subprocess.Popen[str]":
        """Start `tipcflow trigger --wait` as user `ci`."""
        env = {**os.environ, "TIPCFLOW_AIRFLOW_URL": f"http://127.0.0.1:{self.port}"}
        env |= {"TIPCFLOW_AIRFLOW_USER": "ci", "TIPCFLOW_AIRFLOW_PASSWORD": self.secret("airflow_ci_password")}
        command = [_TIPCFLOW, "trigger", f"toy/toy/{params}", "--cluster", cluster, "--wait", *more]
        return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def certify(self, params: str = FAST, seconds: float = 400, cluster: str = "compose") -> str:
        """Run a chain to its end, which must be `pass`; returns the run's ID."""
        return self.passed(self.trigger(params, cluster=cluster), seconds)

    @contextmanager
    def in_training(self, cluster: str = "compose", params: str = SLOW) -> Iterator[None]:
        """Start a slow chain; in its training, the block runs. The chain must pass with one training attempt."""
        start, started = time.monotonic(), self.trigger(params, cluster=cluster)
        try:
            self.until(lambda: started.poll() is not None or self.is_training(), "a training on both nodes")
            yield
        except BaseException:
            started.kill()
            raise
        run = self.passed(started, 600)
        self.last_s = time.monotonic() - start
        assert self.verdicts()[0] == [run, f"toy/toy/{params}", "pass"]
        assert self.training_attempts(run) == 1

    def passed(self, process: "subprocess.Popen[str]", seconds: float = 400) -> str:
        try:
            output, _ = process.communicate(timeout=seconds)
        finally:
            process.kill()
        assert process.returncode == 0, output
        return self.verdicts()[0][0]

    def tipcflow(self, *words: str, timeout: float = 120) -> str:
        """Run `tipcflow` in a container of a worker."""
        return self.inside("worker", "tipcflow", *words, timeout=timeout)

    def inside(self, service: str, *words: str, timeout: float = 120, check: bool = True) -> str:
        """Run a command in the first container of a service."""
        return self.engine.run("exec", self.containers(service)[0], *words, timeout=timeout, check=check)

    def verify_everywhere(self, run: str) -> None:
        """Each worker verifies the files and the signature of the run's certificate, in a home of its own."""
        count = len(json.loads(self.tipcflow("certificate", "show", run))["files"])
        assert count > 10
        for worker in self.containers("worker"):
            verify = ("tipcflow", "certificate", "verify", run, "--key", "/run/secrets/signing_key_pub")
            report = self.engine.run("exec", worker, *verify)
            assert f"valid ({count} of {count} collected files checked, signature valid)" in report

    def redis(self, *words: str) -> str:
        """Run a command of Redis; returns its response."""
        command = f"AUTH {self.secret('redis_password')}\n{' '.join(words)}\n"
        shown = self.inside("redis", "sh", "-c", f"printf '{command}' | redis-cli")
        return shown.splitlines()[-1]

    def sql(self, text: str, database: str = "tipcflow") -> list[list[str]]:
        """Rows of the metrics database, or of another one."""
        words = ["psql", "--username=postgres", f"--dbname={database}", "--no-align", "--tuples-only", "--command"]
        return [line.split("|") for line in self.inside("postgres", *words, text).splitlines()]

    def verdicts(self) -> list[list[str]]:
        """All runs, the newest first: ID, chain, status."""
        return self.sql("SELECT id, chain, status FROM runs ORDER BY created_at DESC")

    def training_attempts(self, run: str) -> int:
        ((count,),) = self.sql(
            f"SELECT count(*) FROM attempts JOIN steps USING (run, step) WHERE run = '{run}' AND kind = 'train'"
        )
        return int(count)

    def is_training(self) -> bool:
        """Whether both nodes train."""
        find = ["pgrep", "--full", "train.py.*--step-time"]
        return all(self.inside(node, *find, check=False) for node in ("node-1", "node-2"))

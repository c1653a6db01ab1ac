"""An installation with the repository's own configuration that runs public suites from clones at hand."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml
from tests.support.certify import MODE, ROOT, TIPCFLOW, Outcome

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Status
from tipcflow.store import Store

SUITES = Path(os.environ.get("TIPC_SUITES") or "/nonexistent")
NODE_PYTHON = ROOT / ".tipcflow" / "envs" / "node-cpu" / "bin" / "python"
STEP6 = "test_tipc/configs/mobilenet_v3_small"
FLEET = f"{STEP6}/train_fleet_infer_python.txt"
WEIGHTS = (
    "https://paddle-model-ecology.bj.bcebos.com/model/mobilenetv3_reprod/mobilenet_v3_small_pretrained.pdparams"
)
MOBILENET = "test_tipc/configs/MobileNetV3/MobileNetV3_small_x1_0_train_infer_python.txt"
IMAGENET = "https://paddle-imagenet-models-name.bj.bcebos.com/data/whole_chain/whole_chain_little_train.tar"
RUN_S = 1500
# Runs of one kind until the node is as fast as usual; another load makes the result of a run an infra_failure.
TRIES = 6
# File, a text in it, the new text, in which a `{}` at the end is the old one.
Edit = tuple[str, str, str]
# The line below the checks that names the run.
RUN = re.compile(r"^ *run: +(\S+)", re.MULTILINE)


def git(clone: Path, *command: str, given: str = "") -> str:
    """Run git in a clone."""
    author = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    done = subprocess.run(
        ["git", "-C", str(clone), *author, *command], input=given, capture_output=True, text=True, check=True
    )
    return done.stdout


def unreadable(clone: Path) -> list[str]:
    """The files of a clone's commit whose content is not in it: mirrors leave out the largest files."""
    listed = [line.split(maxsplit=3) for line in git(clone, "ls-tree", "-r", "HEAD").splitlines()]
    report = git(clone, "cat-file", "--batch-check", given="".join(f"{one[2]}\n" for one in listed)).splitlines()
    return [path for (*_, path), one in zip(listed, report, strict=True) if one.endswith("missing")]


def changed(repository: str, folder: Path, edits: Iterable[Edit] = ()) -> Path:
    """Clone a repository of `TIPC_SUITES` into the folder, and commit changes of it, without unreadable files."""
    clone = folder / repository
    subprocess.run(["git", "clone", "-q", "-n", str(SUITES / repository), str(clone)], check=True)
    git(clone, "read-tree", "HEAD")
    if left_out := unreadable(clone):
        git(clone, "update-index", "--force-remove", "--", *left_out)
    git(clone, "checkout-index", "-a")
    for name, old, new in edits:
        path = clone / name
        text = path.read_text()
        assert old in text, (name, old)
        path.write_text(text.replace(old, new.replace("{}", old) if new.endswith("{}") else new, 1))
    git(clone, "commit", "-qam", "change")
    return clone


class PublicSite:
    """An installation with the repository's own configuration, and two nodes with Paddle."""

    def __init__(self, folder: Path, nodes: LocalNodes) -> None:
        self.clones: dict[str, Path] = {}
        self.folder = folder / "clones"
        self.home, self.mirror, self.configs = folder / "home", folder / "mirror", folder / "configs"
        self.mirror.mkdir(parents=True)
        shutil.copytree(ROOT / "configs", self.configs)
        cluster = nodes.write_cluster_file(self.configs / "clusters" / "local.yaml")
        content = yaml.safe_load(cluster.read_text())
        for node in content["nodes"]:
            node["mirrors"] = {"https://": str(self.mirror)}
            node["env"] = {**node.get("env", {}), "PYTHONPATH": str(SUITES / "autolog")}
            if (SUITES / "wheels").is_dir():
                node["env"] |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(SUITES / "wheels")}
        cluster.write_text(yaml.safe_dump(content))

    def serve(self, url: str, data: bytes) -> None:
        """Put a file where downloads of that URL find it."""
        path = self.mirror / url.removeprefix("https://")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def configure(self, suite: str, **settings: object) -> None:
        """Change keys of a suite file."""
        path = self.configs / "suites" / f"{suite}.yaml"
        path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **settings}))

    def run(self, suite: str, params: str, *more: str) -> Outcome:
        """Run one chain to its end."""
        env = self.env
        url = yaml.safe_load((self.configs / "suites" / f"{suite}.yaml").read_text()).get("git")
        if url:
            key = f"url.{self._clone(suite)}.insteadOf"
            env |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": key, "GIT_CONFIG_VALUE_0": url}
        command = [str(TIPCFLOW), "run", params, "--suite", suite, "--mode", MODE, "--cluster", "local", *more]
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=RUN_S, check=False)
        assert (self.home / "tipcflow.db").exists(), done.stderr
        with self.store() as store:
            # The newest run may be one that confirmed a check of the printed run.
            printed = RUN.search(done.stdout)
            certified = store.runs.get(printed[1]) if printed else next(iter(store.runs.newest(limit=1)), None)
        assert certified, done.stderr
        return Outcome(done.returncode, done.stdout, done.stderr, certified)

    @property
    def env(self) -> dict[str, str]:
        """The environment of every command."""
        return {**os.environ, "TIPCFLOW_HOME": str(self.home), "TIPCFLOW_CONFIG_DIR": str(self.configs)}

    def store(self) -> Store:
        """The installation's database."""
        return Store.open(f"sqlite:///{self.home / 'tipcflow.db'}")

    def tipcflow(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command other than a run."""
        return subprocess.run(
            [str(TIPCFLOW), *words], env=self.env, capture_output=True, text=True, timeout=120, check=False
        )

    def run_on_healthy_node(self, suite: str, params: str) -> Outcome:
        """Run one chain, and repeat the run as a user does while `node_health` reports a slow node."""
        for _ in range(TRIES):
            outcome = self.run(suite, params)
            if outcome.run.status is not Status.INFRA_FAILURE or "node_health" not in outcome.run.reason:
                return outcome
        pytest.fail(f"the node was slower than usual in {TRIES} runs in a row: {outcome.output}")

    def _clone(self, suite: str) -> Path:
        """The clone of a suite that the test chose, otherwise the default clone."""
        if suite not in self.clones:
            repository = {"models_step6": "models"}.get(suite, suite)
            at_hand = SUITES / repository
            self.clones[suite] = changed(repository, self.folder) if unreadable(at_hand) else at_hand
        return self.clones[suite]

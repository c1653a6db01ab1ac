"""A seat: a chain with a DAG of its own in the shared Airflow, so that several cases can run at the same time."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from tests.support.certify import ROOT, Site

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.airflow_api.node_connections import connections_env

# Airflow reads only files that contain the words airflow and dag.
STUB = '''"""The Airflow DAG of suite {suite}."""

from tipcflow_operators.chain.dag import chain_dags

globals().update(chain_dags("{suite}"))
'''
PARAMS = "test_tipc/configs/toy/train_infer_python.txt"
TOY = ROOT / "tests" / "support" / "toy_suite"


@dataclass(frozen=True)
class Seat:
    """One of the places for cases.

    Attributes:
        number: from 1 on.
        configs: TIPCFLOW_CONFIG_DIR, which all seats share.
        suites: the folder of all seats' suites.
    """

    number: int
    configs: Path
    suites: Path

    @property
    def name(self) -> str:
        """Of its suite, its cluster file and its policy."""
        return f"seat{self.number}"

    @property
    def dag_id(self) -> str:
        """Its chain's DAG."""
        return f"{self.name}.toy.train_infer_python"

    @property
    def suite(self) -> Path:
        """The suite's folder."""
        return self.suites / self.name

    def make(self, dags: Path) -> None:
        """Write what the DAG needs to be drawn."""
        shutil.copytree(TOY, self.suite)
        drawn = {"name": self.name, "folder": str(self.suite), "dialects": ["models/template"]}
        (self.configs / "suites" / f"{self.name}.yaml").write_text(yaml.safe_dump(drawn))
        (dags / f"chains_{self.name}.py").write_text(STUB.format(suite=self.name))
        chain = self.configs / "chains" / self.name / "toy" / "train_infer_python.txt"
        chain.parent.mkdir(parents=True)
        shutil.copy(TOY / PARAMS, chain)
        shutil.copy(ROOT / "configs" / "policies" / "pr.yaml", self.configs / "policies" / f"{self.name}.yaml")
        # The form accepts the clusters that exist when the DAG is drawn; each case writes its own content.
        (self.configs / "clusters").mkdir(exist_ok=True)
        (self.configs / "clusters" / f"{self.name}.yaml").touch()


class SeatSite(Site):
    """What a case edits: a fresh copy of the seat's suite, its policy, the cluster file of its nodes."""

    def __init__(self, seat: Seat, nodes: LocalNodes, *, home: Path, database_url: str) -> None:
        self.seat = seat
        self.nodes = nodes
        self.home = home
        self.database_url = database_url
        self.configs = seat.configs
        self.suite = seat.suite
        shutil.rmtree(self.suite, ignore_errors=True)
        shutil.copytree(TOY, self.suite)
        self.configure_suite()
        self.cluster_file = self._write_cluster_file()

    def configure_suite(self, **settings: Any) -> None:
        """Write the seat's suite file."""
        super().configure_suite(name=self.seat.name, **settings)

    def command(self, *extra: str, **options: str) -> list[str]:
        """`tipcflow run` of the same chain."""
        name = self.seat.name
        return super().command(*extra, **{"suite": name, "cluster": name, "policy": name, **options})

    @property
    def suite_file(self) -> Path:
        """The seat's."""
        return self.configs / "suites" / f"{self.seat.name}.yaml"

    @property
    def policy_file(self) -> Path:
        """The seat's."""
        return self.configs / "policies" / f"{self.seat.name}.yaml"

    def connection(self, node: str) -> str:
        """The id of a node's Airflow connection."""
        return f"{self.seat.name}_{node}"

    def connections(self) -> dict[str, dict[str, Any]]:
        """Id -> Airflow connection of each of the case's nodes."""
        known = connections_env(self.nodes.cluster)
        return {
            self.connection(node.name): json.loads(known[f"AIRFLOW_CONN_{node.connection.upper()}"])
            for node in self.nodes.cluster.nodes
        }

    def _write_cluster_file(self) -> Path:
        path = self.nodes.write_cluster_file(self.configs / "clusters" / f"{self.seat.name}.yaml")
        content = {**yaml.safe_load(path.read_text()), "name": self.seat.name}
        for node in content["nodes"]:
            node["connection"] = self.connection(node["name"])
        path.write_text(yaml.safe_dump(content))
        return path

"""Certifies the sample chain with an installed wheel; run by the Python of an environment outside this clone.

    python -P existing_airflow.py FOLDER NODE_PYTHON TRIGGER

FOLDER holds `dags` and `configs`; NODE_PYTHON is the interpreter of the nodes' environment; TRIGGER is the program
`tipcflow` of an environment with the base installation. The last line of stdout is a JSON object.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import httpx

import tipcflow
import tipcflow_operators
from devcluster.airflow.stack import Stack, airflow_stack
from devcluster.local_nodes.nodes import local_nodes
from tipcflow.airflow_api import Airflow
from tipcflow.airflow_api.node_connections import connections_env
from tipcflow.cli.demo.follow import wait_for_dag

CHAIN = "mobilenet_v3_small/mobilenet_v3_small/train_infer_python"
PAGES = ("", "/runs/{run}", "/api/runs/{run}", "/assets/icon.svg", "/assets/uPlot.iife.min.js")


def main(folder: Path, node_python: Path, trigger: Path) -> None:
    """Start nodes and Airflow, trigger the chain from the base installation, and read the pages."""
    for package in (tipcflow, tipcflow_operators):
        assert Path(package.__file__ or "").is_relative_to(sys.prefix), package.__file__
    home, configs = folder / "home", folder / "configs"
    with local_nodes(home, python=node_python) as nodes:
        nodes.write_cluster_file(configs / "clusters" / "local.yaml")
        connections = connections_env(nodes.cluster)
        upgrade = [Path(sys.executable).with_name("tipcflow"), "db", "upgrade"]
        subprocess.run(upgrade, env=os.environ | {"TIPCFLOW_HOME": str(home)}, check=True, stdout=sys.stderr)
        with airflow_stack(home, dags=folder / "dags", configs=configs, connections=connections) as stack:
            with Airflow(stack.url, user=stack.user, password=stack.password) as airflow:
                wait_for_dag(airflow, stack, CHAIN.replace("/", "."))
                dags = sorted(dag.dag_id for dag in airflow.dags())
                errors = airflow.import_errors()
            report = certify(stack, trigger, folder / "junit.xml")
            (run,) = report["runs"]
            pages = read_pages(stack, run["run"])
    kind = nodes.kind
    print(json.dumps({"dags": dags, "errors": errors, "nodes": kind, "pages": pages, **report}))  # noqa: T201


def certify(stack: Stack, trigger: Path, junit: Path) -> dict[str, object]:
    """What `tipcflow trigger --wait` prints."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("TIPCFLOW", "AIRFLOW"))}
    env |= {"TIPCFLOW_AIRFLOW_URL": stack.url, "TIPCFLOW_AIRFLOW_USER": stack.user}
    env["TIPCFLOW_AIRFLOW_PASSWORD"] = stack.password
    words = [CHAIN, "--mode", "lite_train_lite_infer", "--cluster", "local", "--policy", "slow", "--unpause"]
    done = subprocess.run(
        [trigger, "trigger", *words, "--wait", "--timeout", "35", "--junit", junit, "--json"],
        env=env, cwd=junit.parent, stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    return {**json.loads(done.stdout), "exit_code": done.returncode}


def read_pages(stack: Stack, run: str) -> dict[str, int]:
    """The HTTP status of each page, with a login and, for the first, without."""
    login = {"username": stack.user, "password": stack.password}
    token = httpx.post(f"{stack.url}/auth/token", json=login).raise_for_status().json()["access_token"]
    headers = {"Authorization": f"Bearer {token}"}
    status = {
        path: httpx.get(
            f"{stack.url}/certification{path.format(run=run)}", headers=headers, timeout=60
        ).status_code
        for path in PAGES
    }
    return status | {"without login": httpx.get(f"{stack.url}/certification/api/runs/{run}").status_code}


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))

"""A real Prometheus with docker/monitoring scrapes the api-server, and its rules see what the metrics say."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.support.compose.local import free_port, process, until
from tests.support.stories import TRAIN, a_run, record_run
from tests.ui.deployed.conftest import Site

from tipcflow.domain import Failure, FailureClass, Status
from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run_documents import FailuresDocument
from tipcflow.store import Store

pytestmark = pytest.mark.process
FOLDER = Path(__file__).parents[3] / "docker/monitoring"


@pytest.fixture(scope="module")
def prometheus(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """The configuration of docker/monitoring with this server as its target; intervals and waits are seconds."""
    program, folder, port = shutil.which("prometheus"), tmp_path_factory.mktemp("prometheus"), free_port()
    if program is None:  # a site brings its own
        pytest.skip("prometheus is not installed (Debian: apt-get install prometheus)")
    text = (FOLDER / "prometheus.yaml").read_text()
    assert text.count("localhost:8080") == 1
    text = text.replace("localhost:8080", f"127.0.0.1:{site.port}")
    (folder / "prometheus.yaml").write_text(re.sub(r"(_interval:) 30s", r"\1 3s", text))
    rules = (FOLDER / "alerts.yaml").read_text()
    (folder / "alerts.yaml").write_text(re.sub(r"(for:) \d+\w+", r"\1 1s", rules))
    (folder / "tipcflow.token").write_text(site.token)
    options = [f"--web.listen-address=127.0.0.1:{port}", f"--storage.tsdb.path={folder / 'data'}"]
    with (
        (folder / "log").open("wb") as log,
        process(program, f"--config.file={folder / 'prometheus.yaml'}", *options, stderr=log),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20) as client,
    ):
        until(lambda: _value(client, 'up{job="tipcflow"}') == 1.0)
        yield client


def _value(client: httpx.Client, query: str) -> float | None:
    """Value of a query with one result; None without a result, or if Prometheus does not respond yet."""
    try:
        found = client.get("/api/v1/query", params={"query": query}).json()["data"]["result"]
    except (httpx.HTTPError, ValueError):
        return None
    return float(found[0]["value"][1]) if len(found) == 1 else None


def _firing(client: httpx.Client, alert: str) -> list[dict[str, str]]:
    """The labels of the firing alerts of a rule."""
    alerts = client.get("/api/v1/alerts").json()["data"]["alerts"]
    return [
        each["labels"] for each in alerts if each["labels"]["alertname"] == alert and each["state"] == "firing"
    ]


def test_scraped_values_match_the_database(prometheus: httpx.Client) -> None:
    until(lambda: _value(prometheus, 'tipcflow_runs{status="regression"}') == 1.0)
    assert _value(prometheus, 'tipcflow_runs{status="pass"}') == 1.0
    assert _value(prometheus, "tipcflow_queue_length") == 0.0


def test_all_rules_are_evaluated_without_an_error(prometheus: httpx.Client) -> None:
    names = set(re.findall(r"- alert: (\w+)", (FOLDER / "alerts.yaml").read_text()))

    def rules() -> list[dict[str, object]]:
        (group,) = prometheus.get("/api/v1/rules").json()["data"]["groups"]
        return list(group["rules"])

    until(lambda: all(rule["health"] == "ok" for rule in rules()))
    assert {rule["name"] for rule in rules()} == names


def test_panels_of_the_dashboard_have_the_labels_of_their_legends(prometheus: httpx.Client) -> None:
    until(lambda: _value(prometheus, 'tipcflow_runs{status="pass"}') is not None)
    shown: set[str] = set()
    for panel in json.loads((FOLDER / "dashboard.json").read_text())["panels"]:
        for target in panel["targets"]:
            found = prometheus.get("/api/v1/query", params={"query": target["expr"]}).json()
            assert found["status"] == "success", (panel["title"], found)
            for series in found["data"]["result"]:
                labels = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
                assert labels <= series["metric"].keys(), panel["title"]
                shown |= labels
    assert {"node", "status", "trigger"} <= shown


def test_node_that_is_lost_in_its_first_run_fires_an_alert(prometheus: httpx.Client, site: Site) -> None:
    with Store.open(f"sqlite:///{site.home / 'tipcflow.db'}") as store:
        run = record_run(store, a_run("run-lost", created_at=store.now()), status=Status.INFRA_FAILURE)
        lost = Failure(failure_class=FailureClass.NODE_LOST, node="node-b")
        store.documents.put(run.id, FailuresDocument({AttemptKey(TRAIN, 1): lost}))
    until(lambda: _firing(prometheus, "TipcflowNodeLost"))
    (labels,) = _firing(prometheus, "TipcflowNodeLost")
    assert labels["node"] == "node-b"


def test_wrong_token_is_a_down_target_and_its_alert_fires(
    prometheus: httpx.Client, site: Site, tmp_path_factory: pytest.TempPathFactory
) -> None:
    token = next(tmp_path_factory.getbasetemp().glob("prometheus*/tipcflow.token"))
    token.write_text("guessed")

    def refused() -> bool:
        (target,) = prometheus.get("/api/v1/targets").json()["data"]["activeTargets"]
        return target["health"] == "down" and "40" in target["lastError"]

    try:
        until(refused)
        until(lambda: _firing(prometheus, "TipcflowUnreachable"))
    finally:
        token.write_text(site.token)
    until(lambda: _value(prometheus, 'up{job="tipcflow"}') == 1.0)

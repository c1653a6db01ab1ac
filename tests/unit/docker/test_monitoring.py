"""docker/monitoring: Prometheus accepts the files, the alerts fire when they should, and every metric exists."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

from tipcflow.store.queries.operation import NodeState, Operation
from tipcflow_pages.metrics import Collector

FOLDER = "docker/monitoring"
ANCHOR = re.compile(r"^#+ (.+)$", re.MULTILINE)
# Labels in selectors, clauses, legends and annotations.
LABEL = re.compile(r"""(\w+)\s*(?:=~|!~|!=|=)\s*"|\{\{(\w+)\}\}|\$labels\.(\w+)""")
CLAUSE = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([\w\s,]*)\)")
NODE = ("lab", "n1")
# A deployment in which every metric has a value above 0.
BUSY = Operation(
    at=1e3, runs={"pass": 2, "infra_failure": 1}, unfinished=1, last_verdict=900.0, queued=1, oldest_queued_s=9.0,
    leases={(*NODE, False): 1, (*NODE, True): 1}, node_runs={(*NODE, "pass"): 2, (*NODE, "infra_failure"): 1},
    node_lost={NODE: 1}, node_last_loss={NODE: 900.0}, node_last={NODE: 900.0}, latencies={"pr": [20.0]},
    ingest_lags=[3.0], slowdowns={NODE: 0.25}, drained=[NODE], alerts={"invalid": 1, "new": 1},
    node_states={NODE: NodeState(at=900.0, disk_free_bytes=1 << 30, clock_offset_s=3.0, missing_gpus=1)},
    deliveries=1, oldest_delivery_s=60.0,
)  # fmt: skip


def names_of(expression: str) -> set[str]:
    return set(re.findall(r"\btipcflow_\w+", expression))


def labels_of(*texts: str) -> set[str]:
    matched = [name for text in texts for names in LABEL.findall(text) for name in names if name]
    listed = [name.strip() for text in texts for names in CLAUSE.findall(text) for name in names.split(",")]
    return {*matched, *listed} - {""}


def targets_of(dashboard: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Name of a panel's query -> query."""
    panels = dashboard["panels"]
    return {f"panel_{panel['id']}_{each['refId']}": each for panel in panels for each in panel["targets"]}


@pytest.fixture(scope="session")
def exported() -> list[Metric]:
    """All metrics of the route, each with a value."""
    registry = CollectorRegistry()
    registry.register(Collector(BUSY, 7))
    return list(registry.collect())


@pytest.fixture(scope="session")
def known(exported: list[Metric]) -> set[str]:
    """Names of all metrics of the route."""
    return {family.name for family in exported}


@pytest.fixture(scope="session")
def rules(root: Path) -> list[dict[str, Any]]:
    text = (root / FOLDER / "alerts.yaml").read_text()
    return [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]


@pytest.fixture(scope="session")
def dashboard(root: Path) -> dict[str, Any]:
    return dict(json.loads((root / FOLDER / "dashboard.json").read_text()))


def program() -> str:
    """Path of promtool; without it, also in CI, only the other tests check the files."""
    path = shutil.which("promtool")
    if path is None:
        pytest.skip("promtool is not installed (Debian: apt-get install prometheus)")
    return path


@pytest.mark.process
def test_prometheus_accepts_the_rules_and_the_configuration(root: Path, tmp_path: Path) -> None:
    promtool = program()
    for name in ("prometheus.yaml", "alerts.yaml"):
        (tmp_path / name).write_text((root / FOLDER / name).read_text())
    (tmp_path / "tipcflow.token").write_text("token")
    command = [promtool, "check", "config", "--lint-fatal", "prometheus.yaml"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.process
def test_alerts_fire_and_end(root: Path) -> None:
    command = [program(), "test", "rules", "alerts_test.yaml"]
    result = subprocess.run(command, cwd=root / FOLDER, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.process
def test_every_panel_shows_the_exported_values(
    dashboard: dict[str, Any], exported: list[Metric], tmp_path: Path
) -> None:
    """Prometheus evaluates each query: an invalid one is an error, one without a value an alert."""
    queries = targets_of(dashboard)
    rules = [{"alert": name, "expr": f"absent({query['expr']})"} for name, query in queries.items()]
    series = [{"series": 'up{job="tipcflow"}', "values": "1x5"}]
    for sample in (sample for family in exported for sample in family.samples):
        labels = ", ".join(f'{name}="{value}"' for name, value in sample.labels.items())
        series.append({"series": f"{sample.name}{{{labels}}}", "values": f"{sample.value:.3f}x5"})
    cases = [{"eval_time": "2m", "alertname": name, "exp_alerts": []} for name in queries]
    test = {"interval": "1m", "input_series": series, "alert_rule_test": cases}
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    tests = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump(tests))
    command = [program(), "test", "rules", "tests.yaml"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


def scraped(exported: list[Metric], server: str, prefix: str = "tipcflow_") -> list[dict[str, str]]:
    """The series that Prometheus has of an api-server."""
    series = [{"series": f'up{{job="tipcflow", instance="{server}"}}', "values": "1x5"}]
    for sample in (sample for family in exported for sample in family.samples):
        labels = {**sample.labels, "job": "tipcflow", "instance": server, "pod": f"pod-{server}"}
        text = ", ".join(f'{name}="{value}"' for name, value in labels.items())
        name = sample.name.replace("tipcflow_", prefix)
        series.append({"series": f"{name}{{{text}}}", "values": f"{sample.value:.3f}x5"})
    return series


@pytest.mark.process
def test_panels_count_the_numbers_of_two_servers_once(
    dashboard: dict[str, Any], exported: list[Metric], tmp_path: Path
) -> None:
    """Each panel has as many results as with one server, and the same."""
    cases = []
    for query in (each["expr"] for each in targets_of(dashboard).values()):
        single = query.replace("tipcflow_", "single_")
        compared = f"count(({query}) == ({single})) / count({query})"
        cases.append({"expr": compared, "eval_time": "2m", "exp_samples": [{"labels": "{}", "value": 1}]})
    series = [*scraped(exported, "a"), *scraped(exported, "b"), *scraped(exported, "a", "single_")[1:]]
    test = {"interval": "1m", "input_series": series, "promql_expr_test": cases}
    (tmp_path / "tests.yaml").write_text(yaml.safe_dump({"evaluation_interval": "1m", "tests": [test]}))
    command = [program(), "test", "rules", "tests.yaml"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


def test_labels_of_alerts_and_dashboard_exist(
    rules: list[dict[str, Any]], dashboard: dict[str, Any], exported: list[Metric]
) -> None:
    names = {family.name: {name for sample in family.samples for name in sample.labels} for family in exported}
    texts = {rule["alert"]: (rule["expr"], *rule["annotations"].values()) for rule in rules}
    texts |= {name: (query["expr"], query["legendFormat"]) for name, query in targets_of(dashboard).items()}
    for where, (expression, *others) in texts.items():
        labels: set[str] = set().union(*(names[name] for name in names_of(expression)))
        # Those of the target; `pod` comes from the discovery of Kubernetes.
        assert labels_of(expression, *others) <= labels | {"job", "instance", "pod"}, where
    assert len(set().union(*(labels_of(*each) for each in texts.values()))) > 5


def test_every_alert_has_a_test(root: Path, rules: list[dict[str, Any]]) -> None:
    tests = yaml.safe_load((root / FOLDER / "alerts_test.yaml").read_text())["tests"]
    fired = {case["alertname"] for test in tests for case in test["alert_rule_test"] if case["exp_alerts"]}
    assert fired == {rule["alert"] for rule in rules}


def test_metrics_of_alerts_and_dashboard_exist(
    rules: list[dict[str, Any]], dashboard: dict[str, Any], known: set[str]
) -> None:
    assert len(known) > 10
    in_alerts = {name for rule in rules for name in names_of(rule["expr"])}
    shown = {name for query in targets_of(dashboard).values() for name in names_of(query["expr"])}
    assert in_alerts <= known
    assert shown <= known
    # Every number is on the dashboard, except the window.
    assert known - shown == {"tipcflow_window_days"}


def test_alerts_name_the_section_that_has_their_remedy(root: Path, rules: list[dict[str, Any]]) -> None:
    for rule in rules:
        file, _, anchor = rule["annotations"]["section"].partition("#")
        _, *parts = ANCHOR.split((root / file).read_text())
        titles = (re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-") for title in parts[::2])
        sections = dict(zip(titles, parts[1::2], strict=True))
        assert f"`{rule['alert']}`" in sections[anchor], rule["alert"]
        assert rule["labels"]["severity"] in ("warning", "critical")


def test_panels_of_the_dashboard_do_not_overlap(dashboard: dict[str, Any]) -> None:
    taken: dict[tuple[int, int], str] = {}
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        for cell in ((x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])):
            assert taken.setdefault(cell, panel["title"]) == panel["title"]
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    (variable,) = dashboard["templating"]["list"]
    for panel in dashboard["panels"]:
        sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
        assert {source["uid"] for source in sources} == {f"${{{variable['name']}}}"}


def test_collector_receives_both_signals_in_the_protocol_of_the_settings(root: Path) -> None:
    collector = yaml.safe_load((root / FOLDER / "collector.yaml").read_text())
    pipelines = collector["service"]["pipelines"]
    assert pipelines.keys() == {"traces", "metrics"}
    for kind in ("receivers", "processors", "exporters"):
        assert {name for each in pipelines.values() for name in each[kind]} == collector[kind].keys()
    settings = yaml.safe_load((root / "docker-compose.yaml").read_text())["x-environment"]
    assert settings["OTEL_EXPORTER_OTLP_PROTOCOL"] == "http/protobuf"
    port = collector["receivers"]["otlp"]["protocols"]["http"]["endpoint"].rpartition(":")[2]
    page = (root / "docs/operations.md").read_text()
    for text in (settings["OTEL_EXPORTER_OTLP_ENDPOINT"], page):
        assert re.search(rf"http://[\w.]+:{port}\b", text)
    assert f"port {collector['exporters']['prometheus']['endpoint'].rpartition(':')[2]}" in page


@pytest.mark.parametrize(
    ("variable", "settings"),
    [
        ("JSON_LOGS", {"AIRFLOW__LOGGING__JSON_LOGS", "AIRFLOW__CELERY__TASK_LOGS_TO_STDOUT"}),
        ("OTEL_ON", {"AIRFLOW__TRACES__OTEL_ON", "AIRFLOW__METRICS__OTEL_ON"}),
        ("OTEL_ENDPOINT", {"OTEL_EXPORTER_OTLP_ENDPOINT"}),
    ],
)
def test_variables_switch_logs_and_traces_of_all_components(root: Path, variable: str, settings: set[str]) -> None:
    main = yaml.safe_load((root / "docker-compose.yaml").read_text())["x-environment"]
    worker = yaml.safe_load((root / "compose.worker.yaml").read_text())["services"]["worker"]["environment"]
    for environment in (main, worker):
        assert {name for name, value in environment.items() if f"${{{variable}:-" in value} == settings

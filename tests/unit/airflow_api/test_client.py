"""How the client interprets responses."""

import json

import httpx
import pytest

from tipcflow.airflow_api import RunState
from tipcflow.domain import ConfigError, run_id_of

RUNS = "/api/v2/dags/s.m.f/dagRuns"
RUN = {
    "dag_id": "s.m.f",
    "dag_run_id": "ci__1",
    "state": "queued",
    "run_after": "2026-11-21T12:32:43.455196Z",
    "conf": {"mode": "lite"},
    "a_field_of_tomorrow": 1,
}


def listed(*names: str) -> httpx.Response:
    dags = [{"dag_id": name, "is_paused": False} for name in names]
    return httpx.Response(200, json={"dags": dags, "total_entries": len(dags)})


def test_run_is_triggered_with_the_fields_that_airflow_needs(scripted) -> None:
    airflow, script = scripted({RUNS: [httpx.Response(200, json=RUN)]})
    run = airflow.trigger("s.m.f", {"mode": "lite"}, "ci__1")
    assert json.loads(script.requests[-1].content) == {
        "dag_run_id": "ci__1",
        "logical_date": None,
        "conf": {"mode": "lite"},
    }
    assert (run.state, run.run) == (RunState.QUEUED, run_id_of("s.m.f", "ci__1", run.run_after))


def test_a_run_that_exists_is_given_back(scripted) -> None:
    airflow, _ = scripted(
        {RUNS: [httpx.Response(409)], f"{RUNS}/ci__1": [httpx.Response(200, json={**RUN, "state": "running"})]}
    )
    assert airflow.trigger("s.m.f", {"mode": "lite"}, "ci__1").state is RunState.RUNNING


def test_a_lost_response_creates_no_second_run(scripted) -> None:
    lost = httpx.ReadTimeout("timed out")
    airflow, script = scripted(
        {RUNS: [lost, httpx.Response(409)], f"{RUNS}/ci__1": [httpx.Response(200, json=RUN)]}
    )
    assert airflow.trigger("s.m.f", {"mode": "lite"}, "ci__1").run_id == "ci__1"
    requested = [json.loads(one.content)["dag_run_id"] for one in script.requests if one.url.path == RUNS]
    assert requested == ["ci__1", "ci__1"]


def test_existing_run_with_other_params_is_refused(scripted) -> None:
    airflow, _ = scripted({RUNS: [httpx.Response(409)], f"{RUNS}/ci__1": [httpx.Response(200, json=RUN)]})
    with pytest.raises(ConfigError, match=r"has a run ci__1 with other params.*lite.*whole"):
        airflow.trigger("s.m.f", {"mode": "whole"}, "ci__1")


def test_an_unknown_dag_brings_those_of_near_names(scripted) -> None:
    known = listed("s.m.f", "s.m.g", "other.net.x")
    airflow, _ = scripted({"/api/v2/dags/s.m.ff/dagRuns": [httpx.Response(404)], "/api/v2/dags": [known]})
    with pytest.raises(ConfigError, match=r"has no DAG s\.m\.ff\n  hint: near: s\.m\.f, s\.m\.g"):
        airflow.trigger("s.m.ff", {}, "ci__1")


def test_an_unknown_run_of_a_known_dag_is_distinguished(scripted) -> None:
    airflow, _ = scripted({f"{RUNS}/ci__9": [httpx.Response(404)], "/api/v2/dags": [listed("s.m.f")]})
    with pytest.raises(ConfigError, match=r"DAG s\.m\.f has no run ci__9"):
        airflow.dag_run("s.m.f", "ci__9")


def test_params_that_airflow_rejects_are_reported_in_its_words(scripted) -> None:
    no = httpx.Response(
        400,
        json={"detail": "Invalid input for param mode:\n 'x' is not one of ['lite']\n\nFailed validating 'enum'"},
    )
    airflow, _ = scripted({RUNS: [no]})
    with pytest.raises(ConfigError, match=r"Invalid input for param mode: 'x' is not one of \['lite'\]$"):
        airflow.trigger("s.m.f", {"mode": "x"}, "ci__1")


def test_all_pages_are_read(scripted) -> None:
    def page(first: int, count: int) -> httpx.Response:
        dags = [{"dag_id": f"s.m.{first + one:03d}", "is_paused": True} for one in range(count)]
        return httpx.Response(200, json={"dags": dags, "total_entries": 150})

    airflow, script = scripted({"/api/v2/dags": [page(0, 100), page(100, 50)]})
    assert len({dag.dag_id for dag in airflow.dags()}) == 150
    assert [one.url.params["offset"] for one in script.requests[1:]] == ["0", "100"]


def test_mapped_tasks_are_listed_one_by_one(scripted) -> None:
    tasks = [
        {"task_id": "train", "dag_id": "s.m.f", "dag_run_id": "ci__1", "map_index": index, "state": None}
        for index in (1, 0)
    ]
    page = httpx.Response(200, json={"task_instances": tasks, "total_entries": 2})
    airflow, _ = scripted({f"{RUNS}/ci__1/taskInstances": [page]})
    assert [one.map_index for one in airflow.task_instances("s.m.f", "ci__1")] == [0, 1]


def test_note_is_cut_at_the_limit_of_airflow(scripted) -> None:
    airflow, script = scripted({f"{RUNS}/ci__1": [httpx.Response(200, json=RUN)]})
    airflow.set_note("s.m.f", "ci__1", "x" * 3000)
    assert json.loads(script.requests[-1].content) == {"note": "x" * 1000}
    assert script.requests[-1].url.params["update_mask"] == "note"


def test_login_that_may_not_unpause_reads_the_required_role(scripted) -> None:
    airflow, _ = scripted({"/api/v2/dags/s.m.f": [httpx.Response(403, json={"detail": "Forbidden"})]})
    with pytest.raises(
        ConfigError, match=r"s\.m\.f is paused, .* not unpause it\n  hint: a user with the role operator or admin"
    ):
        airflow.unpause("s.m.f")


def test_facts_of_an_unknown_run_are_none(scripted) -> None:
    path = "/certification/api/runs/r1"
    airflow, _ = scripted({path: [httpx.Response(404, json={"detail": "no run"})]})
    assert airflow.certification("r1") is None


def test_last_user_of_a_stop_is_found_among_all_actions(scripted) -> None:
    entries = [
        {"who": "bob", "action": "annotate run", "about": "s.m.f ci__1"},
        {"who": "eve", "action": "mark run failed", "about": "s.m.f ci__2"},
        {"who": "mia", "action": "mark run failed", "about": "s.m.f ci__1"},
        {"who": "ada", "action": "stop run", "about": "s.m.f ci__1"},
    ]
    page = httpx.Response(200, json={"entries": entries, "days": 1.0})
    airflow, script = scripted({"/certification/api/audit": [page]})
    assert [airflow.stopped_by("s.m.f", run) for run in ("ci__1", "ci__2", "ci__3")] == ["mia", "eve", ""]
    assert script.requests[-1].url.params["days"] == "1"


def test_without_the_plugin_the_facts_route_is_airflows_page(scripted) -> None:
    page = httpx.Response(200, text="<html>", headers={"content-type": "text/html"})
    airflow, _ = scripted({"/certification/api/runs/r1": [page]})
    with pytest.raises(ConfigError, match="has no Certification page"):
        airflow.certification("r1")


def test_health_names_missing_components(scripted) -> None:
    report = {
        "metadatabase": {"status": "healthy"},
        "scheduler": {"status": "healthy", "latest_scheduler_heartbeat": "…"},
        "triggerer": {"status": None},
        "dag_processor": {"status": "unhealthy"},
    }
    airflow, script = scripted({"/api/v2/monitor/health": [httpx.Response(200, json=report)]})
    assert airflow.health().missing() == ("triggerer", "dag_processor")
    assert airflow.health().missing("scheduler") == ()
    assert script.paths() == ["GET /api/v2/monitor/health"] * 2

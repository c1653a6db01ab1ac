"""Lists that the demo requests."""

import httpx

RUN = {"dag_id": "s.m.f", "state": "running", "run_after": "2026-11-21T12:00:00Z"}


def test_unfinished_runs_of_all_dags_are_listed(scripted) -> None:
    runs = [{**RUN, "dag_run_id": f"demo__{number}"} for number in range(2)]
    airflow, script = scripted(
        {"/api/v2/dags/~/dagRuns": [httpx.Response(200, json={"dag_runs": runs, "total_entries": 2})]}
    )
    assert [run.run_id for run in airflow.unfinished()] == ["demo__0", "demo__1"]
    assert script.requests[-1].url.params.get_list("state") == ["queued", "running"]


def test_import_errors_are_listed_by_dag_file(scripted) -> None:
    errors = [
        {"filename": f"{number}.py", "stack_trace": "SyntaxError", "timestamp": f"1970-01-01T00:0{number}:00Z"}
        for number in range(3)
    ]
    airflow, _ = scripted(
        {"/api/v2/importErrors": [httpx.Response(200, json={"import_errors": errors, "total_entries": 3})]}
    )
    assert airflow.import_errors() == {f"{number}.py": "SyntaxError" for number in range(3)}
    assert list(airflow.import_errors(since=60.0)) == ["1.py", "2.py"]

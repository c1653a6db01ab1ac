"""Names of jobs."""

from tipcflow.execute.allocation import names


def test_names_of_jobs_lead_to_their_runs() -> None:
    run = "20261126t094740-toy-f660"
    assert names.run_of(names.job_name(run, 12)) == run
    assert names.run_of("other-1") == ""


def test_jobs_of_a_run_have_any_number() -> None:
    assert names.is_of("tipc-mine-12", "mine")
    assert not names.is_of("tipc-mine-2-1", "mine")

"""What a bisection prints."""

from dataclasses import replace
from pathlib import Path

from tests.support.stories import a_run, open_store, record_run

from tipcflow.bisect import Assessment, Candidate, Touches
from tipcflow.domain import Status
from tipcflow.execute.bisection.commits import Commit
from tipcflow.execute.bisection.loop import Bisection, Progress
from tipcflow.execute.bisection.measured import Measured
from tipcflow.execute.bisection.subject import FAILURE, Subject
from tipcflow.execute.bisection.text import (
    found_lines,
    measure_line,
    opening,
    prior_line,
    result_json,
    value_line,
)

COMMITS = tuple(Commit(f"{number}" * 40, f"Change {number}") for number in range(5))
RUN = a_run("run-1").model_copy(update={"ended_at": a_run().created_at + 90, "status": Status.PASS})


def bisection(path: Path, name: str = "batch_cost") -> Bisection:
    with open_store(path / "t.db") as store:
        return Bisection(store, Subject("s/m/f", "mode", "spec", name, "train"), COMMITS, lambda _: RUN, 0.95)


def measured(*, skipped: dict[int, str] | None = None, values: dict[int, list[float]] | None = None) -> Measured:
    values = {0: [1.0, 1.0], 2: [1.2], 4: [1.2, 1.2]} if values is None else values
    return Measured(values, {place: [RUN] * len(several) for place, several in values.items()}, skipped or {})


def test_opening_describes_the_search(tmp_path: Path) -> None:
    search = bisection(tmp_path)
    assert opening(search) == (
        "s/m/f, batch_cost train: 4 commits after 00000000 'Change 0' up to 44444444 'Change 4'"
    )
    assert measure_line(search, Progress(measured(), None, 4)) == "run 6: 44444444 'Change 4' (the bad end)"
    assessment = Assessment((Candidate((2,), 0.6), Candidate((1,), 0.37), Candidate((3, 4), 0.03)), False, (1,))
    line = measure_line(search, Progress(measured(), assessment, 1))
    assert line == "run 6: 11111111 'Change 1'; 2 of 4 commits left"


def test_a_single_commit_and_run_are_singular(tmp_path: Path) -> None:
    search = replace(bisection(tmp_path), versions=COMMITS[:2])
    assert (
        opening(search) == "s/m/f, batch_cost train: 1 commit after 00000000 'Change 0' up to 11111111 'Change 1'"
    )
    nothing = Progress(measured(values={0: [1.0]}), None, None, "run run-1 was cancelled")
    assert found_lines(search, nothing) == ["undecided: run run-1 was cancelled (1 run, 1:30)"]


def test_lines_of_parallel_runs_name_their_versions(tmp_path: Path) -> None:
    search = bisection(tmp_path)
    line = measure_line(search, Progress(measured(), None, 4), 0, ahead=2)
    assert line == "run 8: 00000000 'Change 0' (the good end)"
    with open_store(tmp_path / "v.db") as store:
        run = record_run(store)
        of_loss = replace(search, store=store, subject=Subject(run.chain, run.mode, "spec", "loss", "train"))
        assert value_line(of_loss, run, 2) == f"  22222222: 1 ({run.id}, pass)"


def test_prior_of_commits_is_one_line(tmp_path: Path) -> None:
    search = bisection(tmp_path)
    assert prior_line(search) == ""
    kinds = (Touches.OTHER, Touches.CHAIN, Touches.OTHER, Touches.DOCUMENTATION, Touches.OTHER)
    commits = tuple(replace(commit, touches=kind) for commit, kind in zip(COMMITS, kinds, strict=True))
    known = replace(search, versions=commits)
    assert prior_line(known) == (
        "prior probability of a commit: 57.7 % if it touches files of the chain (1 commit), "
        "12.7 % if it touches documentation only (1 commit), 14.8 % if it touches other files (2 commits)"
    )
    progress = Progress(measured(), Assessment((Candidate((1,), 0.97),), True, ()), None)
    assert result_json(known, progress)["candidates"][0]["commits"][0]["touches"] == "chain"


def test_output_names_the_commit_of_a_changed_value(tmp_path: Path) -> None:
    with open_store(tmp_path / "v.db") as store:
        run = record_run(store)
        search = Bisection(
            store, Subject(run.chain, run.mode, "spec", "loss", "train"), COMMITS, lambda _: run, 0.95
        )
        assert value_line(search, run) == f"  1 ({run.id}, pass)"
        failed = Bisection(store, Subject(run.chain, run.mode, "spec", FAILURE), COMMITS, lambda _: run, 0.95)
        assert value_line(failed, run) == f"  works ({run.id}, pass)"
        broken = run.model_copy(update={"status": Status.FAILED, "reason": "train: exit code 1"})
        assert value_line(failed, broken) == f"  fails ({run.id}, failed: train: exit code 1)"
        hinted = broken.model_copy(update={"reason": "node b: no SSH server is running there\n  hint: start sshd"})
        line = f"  fails ({run.id}, failed: node b: no SSH server is running there (start sshd))"
        assert value_line(failed, hinted) == line


def test_the_commit_is_found(tmp_path: Path) -> None:
    assessment = Assessment((Candidate((2,), 0.972), Candidate((1,), 0.028)), True, ())
    progress = Progress(measured(skipped={3: "failed: no data"}), assessment, None)
    assert found_lines(bisection(tmp_path), progress) == [
        "97 %: 22222222 'Change 2' (5 runs, 7:30)",
        "batch_cost: 1 before, 1.2 since (1.200 x)",
        "not measurable: 33333333 'Change 3': failed: no data",
    ]
    data = result_json(bisection(tmp_path), progress)
    assert data["certain"] is True
    assert data["candidates"][0] == {"commits": [{"id": "2" * 40, "title": "Change 2"}], "probability": 0.972}
    assert data["measurements"][1] == {"commit": "2" * 40, "values": [1.2]}


def test_several_indistinguishable_commits(tmp_path: Path) -> None:
    assessment = Assessment((Candidate((2, 3), 0.99), Candidate((1,), 0.01)), True, ())
    lines = found_lines(bisection(tmp_path), Progress(measured(), assessment, None))
    assert lines[0] == "99 %: one of 2 commits: 22222222 'Change 2', 33333333 'Change 3' (5 runs, 7:30)"


def test_output_of_an_undecided_search_has_the_candidates(tmp_path: Path) -> None:
    assessment = Assessment((Candidate((2,), 0.6), Candidate((1,), 0.4)), False, (1,))
    lines = found_lines(
        bisection(tmp_path), Progress(measured(), assessment, None, "the limit of 5 runs is reached")
    )
    assert lines == [
        "undecided: the limit of 5 runs is reached (5 runs, 7:30); most probable:",
        "  60 % 22222222 'Change 2'",
        "  40 % 11111111 'Change 1'",
    ]
    nothing = Progress(measured(values={}), None, None, "run run-1 was cancelled")
    assert found_lines(bisection(tmp_path), nothing) == ["undecided: run run-1 was cancelled (0 runs, 0.0 s)"]


def test_output_names_the_commit_of_a_failure(tmp_path: Path) -> None:
    assessment = Assessment((Candidate((2,), 0.972),), True, ())
    values = {0: [0.0, 0.0], 2: [1.0, 0.0], 4: [1.0]}
    lines = found_lines(bisection(tmp_path, FAILURE), Progress(measured(values=values), assessment, None))
    assert lines[1] == "failures: 0 of 2 runs before, 2 of 3 since"

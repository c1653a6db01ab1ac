from typing import Any

from tests.support.stories import T0, a_run

from tipcflow.domain import Status
from tipcflow.report.overview.today import Problem, State, builds_of, make_problem, shared_suspects, worst_first


def state(chain: str, status: Status = Status.PASS, **fields: Any) -> State:
    known = {"suite": "s", "mode": "m", "cluster": "c", "environment": "e", "framework": "paddle 3.4.0.dev1122"}
    return State(**(known | {"chain": chain, "status": status, "run": f"r-{chain}", "started_at": T0} | fields))


def problem(where: State, *, first: float = T0, suspects: tuple[str, ...] = ()) -> Problem:
    run = a_run(where.run, created_at=where.started_at, status=where.status, ended_at=T0 + 9, reason="why")
    begun = a_run("first", created_at=first, status=where.status, ended_at=first + 9)
    return make_problem(where, run, None, begun, suspects, since=T0)


def test_every_build_has_a_sentence() -> None:
    states = [state(f"ok{number}") for number in range(912)]
    bad = [state(f"slow{number}", Status.REGRESSION) for number in range(6)]
    bad += [state(f"broken{number}", Status.FAILED) for number in range(3)]
    bad += [state(f"infra{number}", Status.INFRA_FAILURE) for number in range(9)]
    problems = [problem(each, first=T0 if "slow" in each.chain else T0 - 1) for each in bad]
    (build,) = builds_of([*states, *bad], problems)
    assert build.sentence == (
        "912 of 930 chains pass on paddle 3.4.0.dev1122; 6 regressions (6 new), 3 broken, "
        "9 infrastructure failures"
    )
    assert (build.problems, build.new) == ({"broken": 3, "regression": 6, "infrastructure": 9}, {"regression": 6})


def test_builds_with_a_single_chain_and_an_unknown_build() -> None:
    old = state("a", framework="", started_at=T0 - 9)
    first, second = builds_of([old, state("b", Status.FAILED)], [problem(state("b", Status.FAILED))])
    assert first.sentence == "0 of 1 chain passes on paddle 3.4.0.dev1122; 1 broken (new)"
    assert second.sentence == "1 of 1 chain passes on an unknown framework build"


def test_a_chain_counts_once_with_its_worst_state() -> None:
    states = [state("a"), state("a", Status.REGRESSION, environment="f"), state("b", Status.IMPROVEMENT)]
    (build,) = builds_of(states, [])
    assert (build.chains, build.passing, build.problems) == (2, 1, {"regression": 1})


def test_quarantined_chains_are_not_counted_as_passing() -> None:
    states = [state("a"), state("b", quarantined=True), state("c", Status.IMPROVEMENT, quarantined=True)]
    states += [
        state("b", environment="f"),
        state("d", Status.FAILED),
        state("d", quarantined=True, environment="f"),
    ]
    (build,) = builds_of(states, [])
    assert (build.chains, build.passing, build.quarantined) == (4, 1, 2)
    assert build.sentence == "1 of 4 chains pass on paddle 3.4.0.dev1122; 2 quarantined, 1 broken"


def test_the_worst_chains_are_first() -> None:
    words = (Status.INFRA_FAILURE, Status.FAILED, Status.REGRESSION, Status.CONFIG_ERROR)
    problems = [problem(state(word.value, word)) for word in words]
    problems.append(problem(state("newer", Status.FAILED), first=T0 + 5))
    assert [each.chain for each in worst_first(problems)] == [
        "config_error", "newer", "failed", "regression", "infra_failure",
    ]  # fmt: skip


def test_changes_that_new_problems_share() -> None:
    failed = [problem(state(name, Status.FAILED), suspects=("framework 1 -> 2", f"suite {name}")) for name in "ab"]
    lost = problem(state("c", Status.INFRA_FAILURE), suspects=("framework 1 -> 2",))
    known = problem(state("d", Status.FAILED), first=T0 - 1, suspects=("framework 1 -> 2",))
    (shared,) = shared_suspects([*failed, lost, known])
    assert (shared.change, shared.chains) == ("framework 1 -> 2", ("a", "b"))

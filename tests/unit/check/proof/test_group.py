"""ran.group: processes that trained apart, or left early, are named; what cannot be decided names no rank."""

from types import ModuleType
from typing import Any

import pytest

from tipcflow.check import CheckContext
from tipcflow.check.proof.group import ran_group
from tipcflow.domain import CheckResult, Facts, Observed, ObservedRank, ProcessReport, Status

FAILED, PASS, OPEN = Status.FAILED, Status.PASS, Status.INSUFFICIENT_DATA
TRAINED = {"seconds": 60.0, "cpu_s": 50.0, "framework": "paddle", "framework_s": 58.0}
ALONE = {"peers": 0, "others": 0, "local": 0}
LEFT = {"seconds": 16.0, "cpu_s": 6.0, "framework": "", "framework_s": 0.0, **ALONE}


def with_ranks(build: ModuleType, *ranks: dict[str, Any] | None, **observed: Any) -> Facts:
    """A training of two ranks per node, or as many as there are, the first half on node alpha; None: not seen."""
    each = len(ranks) // 2
    sides = [
        Observed(
            ranks=tuple(
                ObservedRank(rank=number, **words)
                for number, words in enumerate(ranks)
                if words is not None and number // each == at
            ),
            **observed,
        )
        for at in (0, 1)
    ]
    steps = tuple(
        step.model_copy(update={"world_size": len(ranks)}) if step.id == build.TRAIN else step
        for step in build.steps()
    )
    records = [build.record(build.TRAIN, node, observed=one) for node, one in zip(build.NODES, sides, strict=True)]
    others = [one for one in build.records() if one.step != build.TRAIN]
    return build.facts(plan=build.plan(steps=steps), records=(*records, *others))


def judged(facts: Facts) -> CheckResult:
    (result,) = ran_group(facts, CheckContext())
    return result


def test_connections_between_the_nodes_are_a_proof(build: ModuleType) -> None:
    result = judged(build.facts())
    assert (result.status, result.reason) == (PASS, "ranks on alpha, beta held connections with each other")


def test_node_b_leaves_at_once(build: ModuleType) -> None:
    """real.md B v-b: ranks 2 and 3 exit with 0 at once, the two on the other node train among themselves."""
    two = {**TRAINED, **ALONE, "local": 3}
    result = judged(with_ranks(build, two, two, LEFT, LEFT))
    assert (result.status, result.reason) == (
        FAILED,
        "rank 2 on beta (and 1 more) exited after 16 s without connections; rank 0 on alpha ran 60 s",
    )


def test_ranks_that_train_separately_fail(build: ModuleType) -> None:
    """real.md B v-a: nothing calls init_parallel_env."""
    result = judged(with_ranks(build, *[{**TRAINED, **ALONE}] * 4))
    assert (result.status, result.reason) == (
        FAILED,
        "ranks on node alpha trained separately: no connection with another node in 60 s",
    )


def test_nodes_that_train_separately_fail(build: ModuleType) -> None:
    """Local connections between the ranks of a node do not make a group of two nodes; a download neither."""
    local, downloads = {**TRAINED, **ALONE, "local": 2}, {**TRAINED, **ALONE, "others": 1}
    assert judged(with_ranks(build, local, local, local, local)).status is FAILED
    result = judged(with_ranks(build, downloads, downloads, local, local))
    assert (result.status, result.reason) == (
        FAILED,
        "ranks on node beta trained separately: no connection with another node in 60 s",
    )


@pytest.mark.parametrize(
    ("ranks", "observed", "why"),
    [
        ([{**TRAINED, **ALONE}] * 4, {"servers": True}, "training uses parameter servers"),
        ([{**TRAINED, **ALONE}] * 4, {"closed": 1}, "no connection of alpha, beta with another node observed"),
        (
            [{**TRAINED, **ALONE, "hidden": True}] * 2,
            {},
            "connections of rank 0 on alpha, rank 1 on beta are hidden",
        ),
        ([{**TRAINED, **ALONE, "framework": ""}] * 2, {}, "no process loaded Paddle or PyTorch"),
        (
            [{**TRAINED, **ALONE, "framework_s": 1.0}] * 2,
            {},
            "no connection of alpha, beta with another node observed",
        ),
        ([{**TRAINED, "others": 1}] * 2, {}, "no connection of alpha, beta with another node observed"),
        ([{**TRAINED, **ALONE}, None], {}, "rank 1: no process observed"),
        ([None, None], {}, "no process with a rank was observed"),
    ],
)
def test_unknown_facts_accuse_no_rank(
    build: ModuleType, ranks: list[Any], observed: dict[str, Any], why: str
) -> None:
    result = judged(with_ranks(build, *ranks, **observed))
    assert (result.status, result.reason) == (OPEN, f"{why}; not proven that the ranks trained together")


def test_rank_0_continues_with_the_evaluation(build: ModuleType) -> None:
    """Ranks that end long before rank 0 have trained with it."""
    short = {**TRAINED, "seconds": 16.0, "cpu_s": 6.0, "peers": 1}
    assert judged(with_ranks(build, {**TRAINED, "peers": 1}, short)).status is PASS


def test_a_single_process_is_not_a_group(build: ModuleType) -> None:
    steps = tuple(one.model_copy(update={"world_size": 1}) for one in build.steps())
    assert ran_group(build.facts(plan=build.plan(steps=steps)), CheckContext()) == []


def test_a_failed_training_has_its_own_reason(build: ModuleType) -> None:
    status = {**build.facts().step_status, build.TRAIN: Status.FAILED}
    assert ran_group(build.facts(step_status=status), CheckContext()) == []


JOINED: dict[str, Any] = {"initialized": True, "world_size": 2, "backend": "gloo", "steps": 10}
MADE_STEPS: dict[str, Any] = {"steps": 10}


def with_reports(facts: Facts, *reports: dict[str, Any]) -> Facts:
    """The probe's report of each rank, as many on each node."""
    each = len(reports) // 2
    records = list(facts.records)
    for at in (0, 1):
        mine = [(rank, words) for rank, words in enumerate(reports) if rank // each == at]
        reported = tuple(ProcessReport(rank=str(rank), **words) for rank, words in mine)
        records[at] = records[at].model_copy(update={"probed": True, "processes": reported})
    return facts.model_copy(update={"records": tuple(records)})


def test_the_probe_reports_the_group(build: ModuleType) -> None:
    """Also where connections prove nothing."""
    for ranks in ([TRAINED | ALONE | {"local": 2}] * 2, [TRAINED | ALONE | {"hidden": True}] * 2):
        result = judged(with_reports(with_ranks(build, *ranks, closed=1), JOINED, JOINED))
        assert (result.status, result.reason) == (PASS, "2 of 2 ranks joined one group over gloo")


def test_the_probe_reports_four_separate_trainings(build: ModuleType) -> None:
    facts = with_reports(with_ranks(build, *[{**TRAINED, **ALONE, "framework_s": 1.0}] * 4), *[MADE_STEPS] * 4)
    result = judged(facts)
    assert (result.status, result.reason) == (
        FAILED,
        "ranks 0, 1, 2, 3 trained without a process group: 10 steps, no connections",
    )


def test_the_probe_reports_groups_of_another_size(build: ModuleType) -> None:
    result = judged(with_reports(with_ranks(build, *[TRAINED] * 4), *[JOINED] * 4))
    assert (result.status, result.reason) == (FAILED, "rank 0 joined a group of 2; 4 were declared")


@pytest.mark.parametrize(
    ("report", "rank", "observed"),
    [
        (MADE_STEPS, {"others": 1}, {}),  # MPI, Horovod
        (MADE_STEPS, {}, {"servers": True}),
        ({**MADE_STEPS, "static_runs": 5}, {"framework_s": 1.0}, {}),
        ({**MADE_STEPS, "collectives": {"all_reduce": 5}}, {"framework_s": 1.0}, {}),
        ({**JOINED, "world_size": 1}, {}, {"servers": True}),
    ],
)
def test_the_probe_accuses_no_rank_with_another_backend(
    build: ModuleType, report: dict[str, Any], rank: dict[str, Any], observed: dict[str, Any]
) -> None:
    ranks = [{**TRAINED, **ALONE, **rank}] * 2
    assert judged(with_reports(with_ranks(build, *ranks, **observed), report, report)).status is OPEN


def servers_of(build: ModuleType, nodes: int, *ranks: dict[str, Any]) -> CheckResult:
    """The result of a training with a planned parameter server per node."""
    facts = with_ranks(build, *ranks, servers=True)
    steps = tuple(
        step.model_copy(update={"servers": nodes, "nodes": step.nodes[:nodes]}) if step.world_size else step
        for step in facts.plan.steps
    )
    return judged(facts.model_copy(update={"plan": facts.plan.model_copy(update={"steps": steps})}))


def test_trainers_are_proven_by_connections_with_servers(build: ModuleType) -> None:
    two = [{**TRAINED, "peers": 1}] * 2
    result = servers_of(build, 2, *two)
    assert (result.status, result.reason) == (PASS, "ranks on alpha, beta held connections with other nodes")
    assert servers_of(build, 2, {**TRAINED, **ALONE}, two[1]).status is FAILED

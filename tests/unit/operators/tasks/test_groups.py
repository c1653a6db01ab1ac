"""The graph is drawn from the catalog, the plan is made at the tested ref: which task does which steps."""

import pytest
from tests.support.stories import a_plan

from tipcflow.domain import Plan, Step, StepKind, Variant
from tipcflow_operators.tasks.groups import no_steps_reason, steps_of


def plan_of(*variants: str, more: tuple[Step, ...] = (), repeats: int = 1) -> Plan:
    """A training of each variant on two nodes, as often as it is repeated, and its evaluation on the first."""
    steps = [Step(id="prepare", kind=StepKind.PREPARE, nodes=("node-a", "node-b"))]
    for name in variants:
        for repeat in range(1, repeats + 1):
            common = {"variant": name, "repeat": repeat}
            step = Step(id=f"{name}_{repeat}/train", kind=StepKind.TRAIN, nodes=("node-a", "node-b"), **common)
            steps += [step, Step(id=f"{name}_{repeat}/eval", kind=StepKind.EVAL, nodes=("node-a",), **common)]
    known = tuple(Variant(id=name, trainer="norm_train") for name in variants)
    return a_plan(variants=known, steps=(*steps, *more))


def ids(plan: Plan, kind: StepKind, group: int, variants: tuple[str, ...]) -> list[str]:
    return [step.id for step in steps_of(plan, kind, group, variants)]


def test_every_group_runs_its_variant() -> None:
    plan = plan_of("one", "two")
    assert ids(plan, StepKind.TRAIN, 0, ("one", "two")) == ["one_1/train"]
    assert ids(plan, StepKind.TRAIN, 1, ("one", "two")) == ["two_1/train"]
    assert ids(plan, StepKind.EVAL, 1, ("one", "two")) == ["two_1/eval"]


def test_groups_match_variants_by_name() -> None:
    assert ids(plan_of("two", "one"), StepKind.TRAIN, 0, ("one", "two")) == ["one_1/train"]


def test_repeats_of_a_variant_are_one_tasks_work_in_order() -> None:
    plan = plan_of("one", "two", repeats=3)
    assert ids(plan, StepKind.TRAIN, 1, ("one", "two")) == ["two_1/train", "two_2/train", "two_3/train"]


def test_first_group_runs_unknown_variants() -> None:
    plan = plan_of("one", "new", "newer")
    assert ids(plan, StepKind.TRAIN, 0, ("one", "two")) == ["one_1/train", "new_1/train", "newer_1/train"]
    assert ids(plan, StepKind.TRAIN, 1, ("one", "two")) == []


def test_a_graph_without_variants_does_all_in_its_one_group() -> None:
    plan = plan_of("one", "two")
    assert ids(plan, StepKind.TRAIN, 0, ()) == ["one_1/train", "two_1/train"]


def test_steps_without_a_variant_are_the_first_groups() -> None:
    # Of modes that do not train.
    plan = plan_of(more=(Step(id="model/infer_cpu", kind=StepKind.INFER_CPU, nodes=("node-a",)),))
    assert ids(plan, StepKind.INFER_CPU, 0, ("one", "two")) == ["model/infer_cpu"]
    assert ids(plan, StepKind.INFER_CPU, 1, ("one", "two")) == []
    assert ids(plan, StepKind.PREPARE, 0, ("one",)) == ["prepare"]


@pytest.mark.parametrize("in_graph", [(), ("one",), ("one", "two"), ("two", "gone"), ("gone",)])
@pytest.mark.parametrize("planned", [(), ("one",), ("one", "two"), ("new", "one", "newer")])
def test_every_step_is_done_by_exactly_one_group(planned: tuple[str, ...], in_graph: tuple[str, ...]) -> None:
    infer = Step(id="model/infer_gpu", kind=StepKind.INFER_GPU, nodes=("node-a",))
    plan = plan_of(*planned, more=(infer,), repeats=2)
    done = [
        step.id
        for kind in StepKind
        for group in range(len(in_graph) or 1)
        for step in steps_of(plan, kind, group, in_graph)
    ]
    assert sorted(done) == sorted(step.id for step in plan.steps)


def test_a_node_without_a_part_differs_from_a_variant_without_steps() -> None:
    plan = plan_of("one", "two")
    result = no_steps_reason(plan, StepKind.TRAIN, 0, ("one", "two"), "node-c")
    assert result == "this variant does not use node node-c"
    assert "no part" not in no_steps_reason(plan, StepKind.EXPORT, 0, ("one", "two"), "node-a")


def test_a_variant_that_is_gone_is_named() -> None:
    result = no_steps_reason(plan_of("one"), StepKind.TRAIN, 1, ("one", "two"), None)
    assert result == "the params file at this ref no longer has variant two"


def test_mode_without_steps_of_a_kind_has_a_reason() -> None:
    # The variant is still in the file, or the mode has none at all.
    assert no_steps_reason(plan_of("one"), StepKind.EXPORT, 0, ("one",), None) == (
        "mode lite_train_lite_infer has no export step in this variant"
    )
    whole = plan_of(more=(Step(id="model/infer_cpu", kind=StepKind.INFER_CPU, nodes=("node-a",)),))
    assert no_steps_reason(whole, StepKind.TRAIN, 1, ("one", "two"), None) == (
        "mode lite_train_lite_infer has no train step in this variant"
    )

"""The suite file's needs in a plan: variables, arguments, replaced slots, and the first steps."""

from collections.abc import Callable

import pytest

from tipcflow.config.needs import Data, Needs
from tipcflow.domain import Cluster, Command, Compat, ConfigError, Plan, Step, StepKind
from tipcflow.plan.needs.steps import with_needs
from tipcflow.plan.source.options import PlanOptions

Make = Callable[..., Plan]


def test_variables_and_pythonpath_are_in_every_command(
    plan: Make, cluster: Callable[..., Cluster], short_text: str
) -> None:
    needs = Needs(env={"FLAGS_enable_pir_api": "0"}, pythonpath=(".", "deploy/python"))
    for compat in Compat:
        made = plan(short_text, compat=compat, cluster=cluster(), needs=needs)
        commands = [one for step in made.steps for one in step.commands.values()]
        commands += [leg.command for step in made.steps for leg in step.legs]
        assert {one.env["FLAGS_enable_pir_api"] for one in commands} == {"0"}
        assert {one.env["PYTHONPATH"] for one in commands} == {"{root}:{root}/deploy/python"}


def test_arguments_are_appended_to_their_kind_of_step_in_spec(
    plan: Make, cluster: Callable[..., Cluster], short_text: str
) -> None:
    needs = Needs(arguments={"export": "-o Global.device=cpu"})
    made = plan(short_text, cluster=cluster(), needs=needs)
    ends = {
        step.kind: [one.text.endswith(" -o Global.device=cpu") for one in step.commands.values()]
        for step in made.steps
        if step.commands
    }
    assert all(ends[StepKind.EXPORT])
    assert not any(ends[StepKind.TRAIN])
    script = plan(short_text, compat=Compat.BASH, cluster=cluster(), needs=needs)
    assert not any("Global.device" in one.text for step in script.steps for one in step.commands.values())


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("-o use_gpu=False", "python x.py -c a.yml -o use_gpu=False weights=w --output_dir=out"),
        ("--slow", "python x.py -c a.yml -o weights=w --output_dir=out --slow"),
    ],
)
def test_arguments_join_the_values_of_their_option(arguments: str, text: str) -> None:
    step = Step(
        id="v/export",
        kind=StepKind.EXPORT,
        variant="v",
        nodes=("a",),
        commands={"a": Command(text="python x.py -c a.yml -o weights=w --output_dir=out")},
    )
    options = PlanOptions(needs=Needs(arguments={"export": arguments}))
    (made,) = with_needs([step], (), options, Compat.SPEC, ("-o",))
    assert made.commands["a"].text == text


def test_a_replaced_slot_counts_in_both_semantics_and_is_shown(
    plan: Make, cluster: Callable[..., Cluster], short_text: str
) -> None:
    before = plan(short_text, cluster=cluster())
    for compat in Compat:
        made = plan(short_text, compat=compat, cluster=cluster(), needs=Needs(slots={"model": "other"}))
        assert made.model == "other"
        assert made.params_sha256 == before.params_sha256
        (note,) = [one for one in made.substitutions if one.what == "model"]
        assert (note.found, note.used) == (before.model, "other")


def test_an_unknown_slot_is_one_error(plan: Make, short_text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        plan(short_text, needs=Needs(slots={"modle": "x"}))
    assert "slots.modle: test_tipc/configs/m/params.txt has no such slot; found 'modle'" in str(raised.value)
    assert raised.value.hint == "did you mean model?"


def test_environment_and_data_are_the_first_steps(
    plan: Make, cluster: Callable[..., Cluster], short_text: str
) -> None:
    data = Data(to="dataset", url="https://h/x.tar", sha256="0" * 64)
    needs = Needs(packages=("six",), data=(data,))
    made = plan(short_text, cluster=cluster(), needs=needs, interpreters={"a": "/envs/a/bin/python"})
    assert [(step.id, step.after) for step in made.steps[:3]] == [
        ("environment", ()),
        ("data", ("environment",)),
        ("prepare", ("data",)),
    ]
    first = made.step("environment").commands["a"]
    assert first.text.startswith('/envs/a/bin/python -I "$TIPCFLOW_AGENT" environment')
    assert "'[\"six\"]'" in first.text
    words = made.step("data").commands["a"].text
    assert f'data dataset https://h/x.tar "$TIPCFLOW_CACHE" --sha256 {"0" * 64} --unpack' in words
    assert [step.id for step in made.steps if not step.after] == ["environment"]


def test_without_needs_nothing_changes(plan: Make, cluster: Callable[..., Cluster], short_text: str) -> None:
    assert plan(short_text, cluster=cluster(), needs=Needs()) == plan(short_text, cluster=cluster())

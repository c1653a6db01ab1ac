"""However a params file is mangled: a plan that does something, or one ConfigError. Never a crash.

Each property gets a few examples in daily runs, and many in the full tests.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tipcflow.domain import Cluster, Compat, ConfigError, Node, StepKind
from tipcflow.params import known_dialects, load_dialect
from tipcflow.plan import MODES, NoFiles, PlanOptions, benchmark_commands, build_plan, plan_commands

INPUTS = Path(__file__).parents[2] / "golden" / "plan" / "inputs"
BASES = [path.read_text() for path in sorted(INPUTS.glob("*.txt"))]
CLUSTER = Cluster(
    name="c",
    nodes=tuple(
        Node(name=name, address=f"10.0.0.{place}", python="/usr/bin/python3", workspace="/w", slots=8)
        for place, name in enumerate("ab")
    ),
)


def requested(
    some: int, often: int, *strategies: st.SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Callable[[int], None]]:
    """A test with few examples by default, and more in the full tests."""

    def make(check: Callable[..., None]) -> Callable[[int], None]:
        @pytest.mark.parametrize("count", [some, pytest.param(often, marks=pytest.mark.full)])
        def test(count: int) -> None:
            settings(deadline=None, max_examples=count)(given(*strategies)(check))()

        return test

    return make


noise = st.text(st.characters(codec="utf-8"), max_size=20)
words = st.sampled_from(
    ["", " ", "null", ":", "|", "||", ";", ",", "=", "-1", "0", "0,1", "*", "$X", "\r", "a:b:c", "a=b=c", "'", '"']
)
lines = st.one_of(noise, words, st.builds("{}:{}".format, words | noise, words | noise))


@st.composite
def mangled(draw: st.DrawFn, bases: Sequence[str] = tuple(BASES)) -> str:
    text = draw(st.sampled_from(bases)).split("\n")
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, max(0, len(text) - 1)))
        match draw(st.sampled_from(["drop", "insert", "replace", "value", "swap", "double"])):
            case "drop":
                text[place : place + 1] = []
            case "insert":
                text.insert(place, draw(lines))
            case "replace":
                text[place : place + 1] = [draw(lines)]
            case "value":
                key = "".join(text[place : place + 1]).split(":")[0]
                text[place : place + 1] = [f"{key}:{draw(words | noise)}"]
            case "swap":
                text[place:] = text[place:][::-1]
            case "double":
                text[place:place] = text[place : place + 1]
    return "\n".join(text)


@pytest.mark.slow
@requested(
    100, 2000, mangled(), st.sampled_from(MODES), st.sampled_from(list(Compat)), st.sampled_from([None, CLUSTER])
)
def test_a_mangled_file_is_planned_or_refused(
    text: str, mode: str, compat: Compat, cluster: Cluster | None
) -> None:
    refused: ConfigError | None = None
    try:
        plan = build_plan(
            text,
            file="f.txt",
            suite="s",
            chain="c",
            dialects=["models/template", "models/mobilenetv3_prod"],
            mode=mode,
            compat=compat,
            cluster=cluster,
            options=PlanOptions(seed=1, seed_argument="--seed={seed}"),
        )
    except ConfigError as error:
        refused = error
    if refused is not None:
        assert refused.message
        assert refused.found
        assert refused.expected
        return
    assert any(step.kind is not StepKind.PREPARE for step in plan.steps)
    assert all(step.commands or step.legs for step in plan.steps)
    assert mode == "whole_infer" or plan.trains or compat is Compat.BASH


FAMILIES = {
    "onnx": ("PaddleClas", "paddle2onnx_infer"),
    "onnx_det": ("PaddleDetection", "paddle2onnx_infer"),
    "pipeline": ("PaddleDetection", "pipeline_infer"),
    "blocks": ("PaddleClas", "lite_train_lite_infer"),
    "benchmark": ("PaddleOCR", "benchmark_train"),
}


@requested(60, 1000, st.data(), st.sampled_from(sorted(FAMILIES)), st.sampled_from(list(Compat)))
def test_a_mangled_file_of_another_script_is_planned_or_refused(
    data: st.DataObject, name: str, compat: Compat
) -> None:
    dialect, mode = FAMILIES[name]
    base = (INPUTS.parent / "families" / f"{name}.txt").read_text()
    text = data.draw(mangled([base]))
    refused: ConfigError | None = None
    try:
        plan = build_plan(
            text, file="f.txt", suite="s", chain="c", dialects=[dialect], mode=mode, compat=compat, cluster=None
        )
    except ConfigError as error:
        refused = error
    if refused is None:
        assert any(step.kind is not StepKind.PREPARE for step in plan.steps)
    else:
        assert refused.message
        assert refused.found
        assert refused.expected


@requested(60, 1000, mangled() | noise, st.sampled_from(MODES), st.sampled_from(known_dialects()))
def test_the_scripts_reading_never_fails(text: str, mode: str, name: str) -> None:
    for command in plan_commands(text, file="f.txt", dialect=load_dialect(name), mode=mode):
        assert command.text


SECTION = (
    "=====train_benchmark_params=====\nbatch_size:8|16\nfp_items:fp32|fp16\nepoch:1\n"
    "--profiler_options:batch_range=[10,20];state=GPU\nflags:null"
)
WORDS = ["", "dynamic_bs8_fp16_DP_N1C8", "dynamicTostatic_bs8_null_DP_N1C1", "dynamicTostatic", "a_b", "a_b_c_d_e"]


@requested(
    50,
    1000,
    mangled(),
    st.sampled_from(WORDS),
    st.sampled_from(["PaddleClas", "PaddleOCR", "PaddleVideo", "PaddleRec"]),
)
def test_a_mangled_benchmark_is_planned_or_refused(text: str, word: str, name: str) -> None:
    dialect = load_dialect(name)
    try:
        commands = benchmark_commands(
            f"{text}\n{SECTION}", file="f.txt", dialect=dialect, word=word, files=NoFiles()
        )
    except ConfigError:
        assert dialect.benchmark is None
    else:
        assert commands

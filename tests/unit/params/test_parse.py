"""Reading params files: every slot keeps its place, and shifted files are refused."""

from pathlib import Path

import pytest

from tipcflow.domain import ConfigError
from tipcflow.params import known_dialects, load_dialect, parse_params, read_params
from tipcflow.params.layout import load_layout

INPUTS = Path(__file__).parents[2] / "golden" / "plan" / "inputs"


def norm() -> str:
    return (INPUTS / "norm_fleet.txt").read_text()


def test_slots_know_their_physical_line() -> None:
    text = norm().replace("\n##\n", "\n\n\n##\n", 1)
    params = parse_params(text, file="f.txt", dialect=load_dialect("models/template"))
    assert (params["trainers"].index, params["trainers"].line) == (14, 17)
    assert params["trainers"].items == ["norm_train"]
    assert params["epochs"].modes == {"lite_train_lite_infer": "5", "whole_train_whole_infer": "90"}
    assert params["model"].value == "mobilenet_v3_small"


def test_the_script_reads_a_cut_file_but_parsing_does_not() -> None:
    text = norm().replace("\n##\n", "\n\n##\n", 1)
    dialect = load_dialect("models/template")
    assert not read_params(text, file="f", dialect=dialect)["infer_param1"].present
    assert parse_params(text, file="f", dialect=dialect)["infer_param1"].line == 52


def test_the_hash_is_that_of_the_text() -> None:
    dialect = load_dialect("models/template")
    first = parse_params(norm(), file="f", dialect=dialect).sha256
    assert first == parse_params(norm(), file="g", dialect=dialect).sha256
    assert first != parse_params(norm() + "\n", file="f", dialect=dialect).sha256


def test_an_unknown_dialect_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        load_dialect("PaddleNothing")
    assert "models/template" in caught.value.expected
    assert caught.value.found == "PaddleNothing"


@pytest.mark.parametrize("name", known_dialects())
def test_every_dialect_is_whole(name: str) -> None:
    dialect = load_dialect(name)
    layout = dialect.line_map()
    places = [spec.line for spec in layout.slots.values()]
    assert len(set(places)) == len(places)
    assert not set(places) & set(layout.fillers)
    for axes in (dialect.cpu.axes, dialect.gpu.axes):
        assert dialect.sequence or dialect.blocks or set(axes) <= set(layout.slots)
    for step in dialect.sequence:
        assert {*step.loops, *step.unless} <= set(layout.slots)
    if not dialect.family:
        assert "norm" in dialect.trainers
        assert {trainer.train for trainer in dialect.trainers.values()} <= set(layout.slots)
    for rule in dialect.skip:
        assert dialect.sequence or set(rule.when) <= {"quant", *dialect.cpu.axes, *dialect.gpu.axes}
    for spec in dialect.modes.values():
        assert load_layout(spec.layout).slots

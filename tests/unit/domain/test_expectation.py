"""What an earlier run declared and a later one does not."""

from tipcflow.domain import Declared, LegKey

LEGS = (LegKey("a/infer_cpu", "fp32"), LegKey("a/infer_cpu", "int8"), LegKey("ab/infer_cpu", "fp32"))
BEFORE = Declared(
    run="r", variants=("a", "ab"), steps=("a/infer_cpu", "a/train", "ab/infer_cpu", "prepare"), legs=LEGS
)


def test_equal_declarations_lack_nothing() -> None:
    assert BEFORE.without(BEFORE) == {}


def test_parts_of_a_removed_variant_are_not_listed() -> None:
    now = Declared(run="now", variants=("ab",), steps=("ab/infer_cpu", "prepare"), legs=LEGS[2:])
    assert BEFORE.without(now) == {"variant": ("a",)}


def test_legs_of_a_removed_step_are_not_listed() -> None:
    now = Declared(run="now", variants=("a", "ab"), steps=("a/train", "ab/infer_cpu"), legs=LEGS[2:])
    assert BEFORE.without(now) == {"step": ("a/infer_cpu", "prepare")}


def test_removed_leg_is_listed_with_its_step() -> None:
    now = BEFORE.model_copy(update={"legs": LEGS[1:]})
    assert BEFORE.without(now) == {"leg": ("a/infer_cpu/fp32",)}

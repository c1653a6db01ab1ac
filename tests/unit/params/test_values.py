"""The small functions that lines are cut with."""

import pytest

from tipcflow.params.values import argument, is_null, mode_entries, split_line, split_list


@pytest.mark.parametrize(
    ("text", "first", "rest"),
    [
        ("key:value", ("key", "value"), ("key", "value")),
        ("weights:https://host/x", ("weights", "https"), ("weights", "https://host/x")),
        ("##", ("##", ""), ("##", "##")),
        (":v", ("", "v"), ("", "v")),
        ("-o Global.device:gpu ", ("-o Global.device", "gpu "), ("-o Global.device", "gpu ")),
    ],
)
def test_lines_are_cut_as_each_suite_does(text: str, first: tuple[str, str], rest: tuple[str, str]) -> None:
    assert split_line(text, "first") == first
    assert split_line(text, "rest") == rest


def test_lists_lose_empty_ends_only() -> None:
    assert split_list("0|0,1") == ["0", "0,1"]
    assert split_list("a||b|") == ["a", "", "b"]
    assert split_list("") == []


def test_first_entry_of_a_mode_ends_at_its_second_equals_sign() -> None:
    assert mode_entries("lite=1|whole=a=b|lite=2") == {"lite": "1", "whole": "a"}
    assert mode_entries("8") == {}


@pytest.mark.parametrize(
    ("value", "null"), [("null", True), ("", True), (" ", True), ("null ", False), ("0", False)]
)
def test_null_is_exact(value: str, null: bool) -> None:
    assert is_null(value) is null
    assert (argument("k", value) == " ") is null
    assert argument("null", value) == " "

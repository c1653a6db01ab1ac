"""Errors about values of the command line: option or argument, value, and what is valid; no text of pydantic."""

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            ["runs", "--status", "foo"],
            "--status: invalid value; found 'foo'; expected one of pass, improvement, cancelled, infra_failure, "
            "unconfirmed, regression, failed, config_error",
        ),
        (["runs", "--limit", "x"], "--limit: invalid value; found 'x'; expected a whole number"),
        (["runs", "-n", "-1"], "--limit: invalid value; found '-1'; expected at least 1"),
        (
            ["run", "f", "-s", "s", "-m", "m", "-c", "c", "--seed", "9223372036854775808"],
            "--seed: invalid value; found '9223372036854775808'; expected at most 4294967295",
        ),
        (
            ["bisect", "f", "loss", "-s", "s", "-m", "m", "-c", "c", "--good", "a", "--seed", "4294967296"],
            "--seed: invalid value; found '4294967296'; expected at most 4294967295",
        ),
        (
            ["ab", "f", "-s", "s", "-m", "m", "-c", "c", "--a", "a", "--b", "b", "--seed", "-1"],
            "--seed: invalid value; found '-1'; expected at least 0",
        ),
        (["trigger", "s/m/c", "--seed", "-1"], "--seed: invalid value; found '-1'; expected at least 0"),
        (
            ["demo", "--seed", "4294967296"],
            "--seed: invalid value; found '4294967296'; expected at most 4294967295",
        ),
        (["history", "a", "b", "--weeks", "x"], "--weeks: invalid value; found 'x'; expected a number"),
        (
            ["scaling", "nope"],
            "COMMAND: is neither a command nor a file; found 'nope'; expected one of list, run, table, or "
            "logs and run IDs with --batch-size-per-device",
        ),
    ],
)
def test_an_invalid_value_is_one_line(tipcflow: Callable[..., Any], arguments: list[str], error: str) -> None:
    result = tipcflow(*arguments)
    assert (result.code, result.out, result.err) == (2, "", f"config_error: {error}\n")


def test_a_key_of_a_request_is_named_as_the_option(tipcflow: Callable[..., Any]) -> None:
    result = tipcflow("compare", "no-such-run", "latest")
    assert result.err.startswith("config_error: A B [C]: ")

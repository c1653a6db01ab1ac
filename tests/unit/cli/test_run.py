"""`tipcflow run` before a run exists: misspelled names."""

from collections.abc import Callable

import pytest
from tests.unit.cli.conftest import CliResult

from tipcflow.store import Store

VALID = {
    "--suite": "mobilenet_v3_small",
    "--mode": "lite_train_lite_infer",
    "--cluster": "example",
    "--policy": "pr",
}


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("--suite", "mobilnet", "--suite: unknown suite; found 'mobilnet'; expected one of PASSL,"),
        ("--cluster", "moon", "--cluster: unknown cluster; found 'moon'; expected one of compose, example"),
        ("--cluster", "local", "`tipcflow local up` starts local nodes"),
        ("--policy", "lax", "--policy: unknown policy; found 'lax'; expected one of pr, weekly"),
        (
            "--mode",
            "lite_train",
            "--mode: unknown mode; found 'lite_train'; expected one of lite_train_",
        ),
    ],
)
def test_a_misspelled_name_makes_no_run(
    tipcflow: Callable[..., CliResult], database: object, option: str, value: str, reason: str
) -> None:
    options = [word for pair in (VALID | {option: value}).items() for word in pair]
    result = tipcflow("run", "x/train_infer_python.txt", *options)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("config_error: ")
    assert reason in result.err
    with Store.open() as store:
        assert store.runs.newest() == []

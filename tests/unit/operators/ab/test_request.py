"""Params of the DAG `ab`: what it accepts, and the names in its errors."""

from types import SimpleNamespace
from typing import Any

import pytest

from tipcflow.domain import ConfigError
from tipcflow.execute.ab.progress import Limits
from tipcflow_operators.ab.request import AbRequest, ab_request

GOOD = {
    "suite": "toy",
    "params_file": "toy/train_infer_python.txt",
    "mode": "lite_train_lite_infer",
    "cluster": "local",
    "policy": "pr",
    "seed": None,
    "a": "v1",
    "b": None,
    "framework_b": "",
}


RUN = SimpleNamespace(dag_id="ab", run_id="manual__x", run_type="manual")


def requested(**given: Any) -> AbRequest:
    return ab_request({**GOOD, **given}, dag_run=RUN)


def test_both_sides_have_their_own_params() -> None:
    request = requested(b="main", framework_b="paddlepaddle==3.3.1", seed=7)
    shared = {name: GOOD[name] for name in ("suite", "params_file", "mode", "cluster", "policy")} | {"seed": 7}
    assert request.confs["A"] == {**shared, "suite_ref": "v1"}
    assert request.confs["B"] == {**shared, "suite_ref": "main", "framework": "paddlepaddle==3.3.1"}
    assert (request.a.suite_ref, request.b.framework, request.a.only_inside) == ("v1", "paddlepaddle==3.3.1", True)


def test_case_of_a_benchmark_is_a_param_of_both_sides() -> None:
    request = requested(mode="benchmark_train", case="dynamic_bs8_fp32_DP_N1C2")
    assert {conf["case"] for conf in request.confs.values()} == {"dynamic_bs8_fp32_DP_N1C2"}
    assert request.a.mode == request.b.mode == "benchmark_train:dynamic_bs8_fp32_DP_N1C2"


def test_defaults_equal_the_defaults_of_the_command() -> None:
    assert (requested().limits, requested().names) == (Limits(), ())
    limits = requested(pairs=5, max_pairs=9, warm_up=0, margin=0.05, error=0.1, budget_minutes=2, metric=["ips"])
    assert limits.limits == Limits(0.1, 0.05, 5, 9, 0, 120)
    assert limits.names == ("ips",)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"marign": 0.1}, "marign: unknown param.*did you mean margin"),
        ({"margin": 0.6}, "margin: .*found .0.6.; expected at most 0.5"),
        ({"pairs": -1}, "pairs: .*found .-1.; expected at least 0"),
        ({"metric": "ips"}, "metric: "),
        (
            {"framework_b": "pa ddle"},
            "^framework_b: invalid value; found \"'pa ddle'\"; expected a name with versions",
        ),
        ({"a": "--upload-pack=x"}, "^a: invalid value.*expected a branch, tag or commit"),
        ({"wheel_b": "w.whl"}, "^sha256_b: the wheel needs a hash"),
        ({"wheel_a": "/w.whl", "sha256_a": "0" * 64}, "^wheel_a: is not on the machine of Airflow"),
        ({"cluster": "/etc/passwd"}, "^cluster: must be a name"),
        ({"params_file": "../x.txt"}, "^params_file: must be a file of the suite"),
        ({"nodes_of": "x"}, "nodes_of: unknown param"),
    ],
)
def test_a_wrong_value_is_named_by_its_param(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s){words}"):
        requested(**wrong)

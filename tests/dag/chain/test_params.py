"""The form of a DAG, and `resolve`, which takes what the form lets through."""

from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Param
from airflow.sdk.exceptions import ParamValidationError

from tipcflow.domain import ConfigError
from tipcflow.plan import ALL_MODES
from tipcflow_operators.chain.params import DEFAULT_MODE, allowed, chain_params, run_params
from tipcflow_operators.tasks.request import CHAIN_PARAMS, RUN_PARAMS, read_conf

ROOT = Path(__file__).parents[3]
VALUES: tuple[Any, ...] = (
    *(None, True, False, "", "x", "7", 0, 1, -1, 7, 19, 20, 21, 1.5, 2**40, [], ["x"], {}, {"a": 1}),
    *(*ALL_MODES, "lite", "pr", "weekly", "local", "paddlepaddle==3.3.1"),
)
# The form offers the policies there are, and lets any cluster be typed: resolve looks whether it is one.
DIFFER_IN_TEXT = {"policy", "cluster", "framework_wheel", "framework_sha256"}


def names(folder: Path, *stems: str) -> None:
    folder.mkdir(parents=True)
    for stem in stems:
        (folder / f"{stem}.yaml").write_text("")


def form_takes(param: Param, value: Any) -> bool:
    try:
        param.resolve(value)
    except ParamValidationError:
        return False
    return True


def resolve_takes(name: str, value: Any) -> bool:
    good = {"mode": DEFAULT_MODE, "cluster": "local"}
    try:
        read_conf({**good, name: value}, allowed=RUN_PARAMS)
    except ConfigError:
        return False
    return True


@pytest.mark.parametrize("name", RUN_PARAMS)
def test_form_and_resolve_have_the_same_params(name: str) -> None:
    differing = [
        value
        for value in VALUES
        if form_takes(run_params(ROOT / "configs")[name], value) is not resolve_takes(name, value)
        and not (name in DIFFER_IN_TEXT and isinstance(value, str))
    ]
    assert differing == []


def test_form_refuses_a_wheel_address_with_a_login() -> None:
    wheel = run_params(ROOT / "configs")["framework_wheel"]
    for accepted in (None, "", "a-1-py3-none-any.whl", "https://host/a@b.whl", "https://host/a.whl?user=b@c"):
        assert form_takes(wheel, accepted), accepted
    for refused in ("https://ci:word@host/a.whl", "http://token@host/a.whl"):
        assert not form_takes(wheel, refused), refused


def test_every_name_has_a_param() -> None:
    params = run_params(ROOT / "configs")
    assert sorted(params) == sorted(RUN_PARAMS)
    assert sorted(chain_params(ROOT / "configs")) == sorted(CHAIN_PARAMS)
    assert allowed(chain=True) == RUN_PARAMS
    assert allowed(chain=False) == (*CHAIN_PARAMS, *RUN_PARAMS)


def test_modes_are_the_modes_that_plans_support() -> None:
    mode = run_params(ROOT / "configs")["mode"]
    assert mode.schema["enum"] == list(ALL_MODES)
    assert mode.value == DEFAULT_MODE


def test_the_first_real_cluster_is_the_default(tmp_path: Path) -> None:
    names(tmp_path / "clusters", "example", "v100", "h20")
    cluster = run_params(tmp_path)["cluster"]
    assert cluster.value == "h20"
    assert cluster.schema["examples"] == ["example", "h20", "v100"]


@pytest.mark.parametrize(
    ("cluster", "is_valid"),
    [
        ("a100", True),
        ("v1.0", True),
        ("v1x0", False),
        # `tipcflow local up` may write it after Airflow has read the DAG.
        ("local", True),
        ("/home/x/.tipcflow/nodes/0aa1b2c3/cluster.yaml", True),
        ("/home/x/.tipcflow/demo/local.yaml", False),
        ("nope", False),
        ("a100 ", False),
    ],
)
def test_other_clusters_are_refused_by_the_form(tmp_path: Path, cluster: str, is_valid: bool) -> None:
    names(tmp_path / "clusters", "a100", "v1.0")
    assert form_takes(run_params(tmp_path)["cluster"], cluster) is is_valid


def test_in_the_demo_its_cluster_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names(tmp_path / "configs" / "clusters", "compose", "example", "local")
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path))
    file = tmp_path / "nodes" / "0a1b2c3d" / "cluster.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("")
    assert run_params(tmp_path / "configs")["cluster"].value == "local", "another Airflow lacks its connections"
    monkeypatch.setenv("AIRFLOW_CONN_TIPCFLOW_LOCAL_A", "{}")
    cluster = run_params(tmp_path / "configs")["cluster"]
    assert cluster.value == str(file)
    assert cluster.schema["examples"] == [str(file), "compose", "example", "local"]
    assert form_takes(cluster, str(file))
    file.unlink()
    assert run_params(tmp_path / "configs")["cluster"].value == "local"


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        (
            "suite_ref",
            ["main", "v1.0^{}", "feature/x", "HEAD~3", "a" * 40],
            ["no such branch", "-x", "a\nb", " a"],
        ),
        ("base", ["origin/main"], ["two words", "--upload-pack=x"]),
        (
            "framework",
            [
                "paddlepaddle",
                "paddlepaddle==3.3.1",
                "paddlepaddle >= 3.3, < 4",
                "paddlepaddle-gpu==3.4.0.dev1122+cu118",
                "torch[extra]~=2.1",
                "paddlepaddle==3.*",
            ],
            ["paddle == banana", "paddle=3", "paddle==", "==3.3", "paddle 3.3", "paddle==3.3.1; x"],
        ),
        ("seed", [0, 7, 2**32 - 1, None], [-1, 1.5, "7", 2**32]),
    ],
)
def test_texts_are_refused_by_the_form_and_by_resolve(name: str, good: list[Any], bad: list[Any]) -> None:
    param = run_params(ROOT / "configs")[name]
    for value in good:
        assert form_takes(param, value), value
        assert resolve_takes(name, value), value
    for value in bad:
        assert not form_takes(param, value), value
        assert not resolve_takes(name, value), value


def test_resolve_names_the_invalid_and_the_expected_value() -> None:
    conf = {"mode": DEFAULT_MODE, "cluster": "local", "framework": "paddle == banana"}
    with pytest.raises(
        ConfigError, match=r"framework: invalid value; found .*banana.*; expected a name with versions"
    ):
        read_conf(conf, allowed=RUN_PARAMS)


def test_form_is_built_without_configs(tmp_path: Path) -> None:
    params = {**chain_params(tmp_path), **run_params(tmp_path)}
    assert params["cluster"].value == "example"
    assert params["policy"].schema["enum"] == ["pr"]
    assert params["suite"].schema["examples"] == []
    assert params["params_file"].value == ""


def test_the_generic_dag_offers_the_suites(tmp_path: Path) -> None:
    names(tmp_path / "suites", "PaddleOCR", "PaddleClas")
    suite = chain_params(tmp_path)["suite"]
    assert suite.value == "PaddleClas"
    assert suite.schema["examples"] == ["PaddleClas", "PaddleOCR"]
    assert form_takes(suite, "PaddleOCR")
    assert not form_takes(suite, "PaddleOCR2")


def test_policies_are_listed_from_the_configs(tmp_path: Path) -> None:
    names(tmp_path / "policies", "weekly", "pr", "strict")
    assert run_params(tmp_path)["policy"].schema["enum"] == ["pr", "strict", "weekly"]


@pytest.mark.parametrize("name", ["suite_ref", "framework", "seed"])
def test_optional_params_may_be_null_in_the_form(name: str) -> None:
    # Airflow's form requires a value where the schema does not list the type null.
    param = run_params(ROOT / "configs")[name]
    assert param.schema["type"][0] == "null"
    assert param.resolve() is None


@pytest.mark.parametrize(
    ("value", "is_valid"),
    [(None, True), ("", True), ("20261121t093005-toy-0a1b", True), ("../x", False), ("a b", False), (7, False)],
)
def test_a_run_whose_nodes_are_used(value: Any, is_valid: bool) -> None:
    assert form_takes(chain_params(ROOT / "configs")["nodes_of"], value) is is_valid
    good = {"mode": DEFAULT_MODE, "cluster": "local"}
    if is_valid:
        assert read_conf({**good, "nodes_of": value}, allowed=allowed(chain=False)).nodes_of == value
    else:
        with pytest.raises(ConfigError, match="nodes_of"):
            read_conf({**good, "nodes_of": value}, allowed=allowed(chain=False))

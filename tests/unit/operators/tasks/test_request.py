"""The parameters that a DAG run accepts, and the errors for all others."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tipcflow.domain import ConfigError, Status
from tipcflow_operators.tasks.request import (
    CHAIN_PARAMS,
    RUN_PARAMS,
    Conf,
    param_error,
    read_conf,
    request_of,
)

GOLDEN = Path(__file__).parents[3] / "golden" / "operators" / "params.txt"
GOOD: dict[str, Any] = {"mode": "lite_train_lite_infer", "cluster": "local"}
GENERIC = (*CHAIN_PARAMS, *RUN_PARAMS)
WRONG: list[dict[str, Any]] = [
    {"moed": "lite_train_lite_infer"},
    {"suiteref": "main"},
    {"colour": "red"},
    {"suite": "PaddleClas"},
    {"mode": "lite"},
    {"mode": None},
    {"mode": ["lite_train_lite_infer"]},
    {"cluster": ""},
    {"cluster": 7},
    {"cluster": "../other"},
    {"cluster": "/etc/passwd"},
    {"suite_ref": 1.5},
    {"framework": {"paddlepaddle": "3.3.1"}},
    {"seed": "7"},
    {"seed": 7.5},
    {"seed": True},
    {"seed": -1},
    {"seed": 2**32},
    {"repeats": 0},
    {"repeats": 21},
    {"repeats": "3"},
    {"repeats": None},
    {"diagnose": "yes"},
    {"diagnose": 1},
    {"policy": 3},
    {"policy": None},
    {"policy": "/etc/passwd"},
    {"policy": "mine.yaml"},
]
WRONG_GENERIC: list[dict[str, Any]] = [
    {"suit": "PaddleClas"},
    {"suite": "../suites/PaddleClas"},
    {"suite": ""},
    {"params_file": "/etc/passwd"},
    {"params_file": "../../secrets.txt"},
    {"params_file": 3},
    {"case": "dynamic bs4"},
]


@pytest.fixture(autouse=True)
def _home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIPCFLOW_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(tmp_path / "configs"))


def refusal(wrong: dict[str, Any], allowed: tuple[str, ...] = RUN_PARAMS) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read_conf({**GOOD, **wrong}, allowed=allowed)
    return caught.value


def test_messages_name_param_and_value() -> None:
    messages = [f"# {wrong}\n{refusal(wrong)}\n" for wrong in WRONG]
    messages += [f"# certify {wrong}\n{refusal(wrong, GENERIC)}\n" for wrong in WRONG_GENERIC]
    with pytest.raises(ConfigError) as nothing:
        read_conf({}, allowed=RUN_PARAMS)
    messages.append(f"# {{}}\n{nothing.value}\n")
    assert "\n".join(messages) == GOLDEN.read_text()


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_wrong_param_is_a_config_error_with_its_key(wrong: dict[str, Any]) -> None:
    error = refusal(wrong)
    assert error.status is Status.CONFIG_ERROR
    assert error.key == next(iter(wrong))
    assert error.expected or error.found


@pytest.mark.parametrize(
    ("name", "near"), [("moed", "mode"), ("Cluster", "cluster"), ("suiteref", "suite_ref"), ("repeat", "repeats")]
)
def test_an_unknown_name_suggests_a_similar_one(name: str, near: str) -> None:
    assert refusal({name: "x"}).hint == f"did you mean {near}?"


def test_a_name_without_a_similar_one_lists_all() -> None:
    error = refusal({"xyz": "x"})
    assert error.hint == ""
    assert error.expected == "one of " + ", ".join(RUN_PARAMS)


def test_the_value_of_an_unknown_param_is_not_repeated() -> None:
    # A token that was pasted into the wrong field must not appear in a log.
    assert "s3cret" not in str(refusal({"password": "s3cret"}))


def test_params_of_the_generic_dag_are_unknown_to_a_chain() -> None:
    for name in CHAIN_PARAMS:
        assert refusal({name: "x"}).message.startswith(f"{name}: unknown param")
    conf = read_conf({**GOOD, "suite": "PaddleClas", "params_file": "a/b.txt"}, allowed=GENERIC)
    assert (conf.suite, conf.params_file) == ("PaddleClas", "a/b.txt")


def test_omitted_params_have_defaults() -> None:
    assert read_conf(GOOD, allowed=RUN_PARAMS) == Conf(
        mode="lite_train_lite_infer",
        cluster="local",
        suite_ref=None,
        framework=None,
        seed=None,
        repeats=1,
        diagnose=False,
        policy="pr",
    )


@pytest.mark.parametrize(("name", "value"), [("repeats", 1), ("repeats", 20), ("seed", 0), ("seed", 2**32 - 1)])
def test_bounds_are_allowed(name: str, value: int) -> None:
    assert getattr(read_conf({**GOOD, name: value}, allowed=RUN_PARAMS), name) == value


def test_the_cluster_file_of_a_running_demo_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "home" / "nodes" / "0a1b2c" / "cluster.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("nodes: []")
    assert read_conf({**GOOD, "cluster": str(file)}, allowed=RUN_PARAMS).cluster == str(file)


@pytest.mark.parametrize(
    "path",
    [
        "runs/20261121t200000-x-0a1b2c3d/a/launch/workerlog.0.yaml",
        "runs/x/cluster.yaml",
        "demo/local.yaml",
        "nodes/0a1b2c/a/workspace/cluster.yaml",
        "nodes/0a1b2c/other.yaml",
        "nodes/../runs/0a1b2c/cluster.yaml",
        "nodes/0a1b2c/../../runs/0a1b2c/cluster.yaml",
        "suites/x/configs/clusters/lab.yaml",
    ],
)
@pytest.mark.parametrize("key", ["cluster", "policy", "suite"])
def test_file_below_home_is_not_a_configuration(tmp_path: Path, path: str, key: str) -> None:
    file = tmp_path / "home" / path
    (tmp_path / "home" / "nodes" / "0a1b2c").mkdir(parents=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("nodes: [{name: a, address: 10.0.0.1, connection: prod_bastion}]")
    assert "must be a name, not a path" in refusal({key: str(file)}, GENERIC).message


def test_link_from_the_demo_folder_is_not_a_configuration(tmp_path: Path) -> None:
    fetched = tmp_path / "home" / "runs" / "x" / "cluster.yaml"
    fetched.parent.mkdir(parents=True)
    fetched.write_text("nodes: []")
    link = tmp_path / "home" / "nodes" / "0a1b2c" / "cluster.yaml"
    link.parent.mkdir(parents=True)
    link.symlink_to(fetched)
    assert "must be a name, not a path" in refusal({"cluster": str(link)}).message


@pytest.mark.parametrize("key", ["cluster", "policy", "suite"])
def test_file_in_the_current_folder_is_not_a_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("nodes: []")
    assert "must be a name, not a path" in refusal({key: "mine.yaml"}, GENERIC).message


def requested(
    conf: dict[str, Any],
    *,
    suite: str = "clas",
    params_file: str = "m/f.txt",
    run: str = "ci__42",
    run_type: str = "operator_triggered",
) -> Any:
    return request_of(
        read_conf({**GOOD, **conf}, allowed=GENERIC),
        suite=suite,
        params_file=params_file,
        dag_run=SimpleNamespace(dag_id="clas.m.f", run_id=run, run_type=run_type),
    )


def test_request_of_a_chain_has_all_params(tmp_path: Path) -> None:
    request = requested({"suite_ref": "main", "framework": "paddlepaddle==3.3.1", "seed": 7, "repeats": 2})
    assert (request.suite, request.params) == ("clas", "m/f.txt")
    assert (request.mode, request.cluster) == ("lite_train_lite_infer", "local")
    assert (request.suite_ref, request.framework) == ("main", "paddlepaddle==3.3.1")
    assert (request.seed, request.repeats, request.diagnose, request.policy) == (7, 2, False, "pr")
    assert (request.trigger, request.owner) == ("ci", "airflow clas.m.f ci__42")
    assert request.config_dir == tmp_path / "configs"


def test_nothing_but_the_suites_own_files_is_read_for_a_dag_run() -> None:
    assert requested({}).only_inside


def test_an_empty_field_of_the_form_is_nothing() -> None:
    request = requested({"suite_ref": "", "framework": "", "suite": None, "params_file": ""})
    assert (request.suite_ref, request.framework) == (None, "")
    assert (request.suite, request.params) == ("clas", "m/f.txt")


def test_the_generic_dag_gets_its_chain() -> None:
    request = requested({"suite": "ocr", "params_file": "det/f.txt"}, suite="", params_file="")
    assert (request.suite, request.params) == ("ocr", "det/f.txt")


@pytest.mark.parametrize(
    ("given", "missing"), [({"suite": "ocr"}, "params_file"), ({"params_file": "f"}, "suite")]
)
def test_half_a_chain_is_an_error(given: dict[str, str], missing: str) -> None:
    with pytest.raises(ConfigError, match=f"{missing}: required: this DAG has no chain of its own"):
        requested(given, suite="", params_file="")


def test_users_dag_run_has_no_trigger_of_tasks() -> None:
    with pytest.raises(ConfigError, match="confirm__ is reserved for DAG runs that tasks of tipcflow start"):
        requested({}, run="confirm__1", run_type="manual")
    with pytest.raises(ConfigError, match="bisect__ is reserved"):
        requested({"only": ["norm_train/train"]}, run="bisect__1", run_type="manual")
    assert requested({}, run="ci__1", run_type="manual").trigger == "ci"


def test_only_a_bisection_leaves_steps_out() -> None:
    part = {"only": ["norm_train/train"]}
    assert list(map(str, requested(part, run="bisect__42__1").only)) == ["norm_train/train"]
    for run in ("ci__42", "weekly__1", "manual__1", "ab__1", "confirm__1", "x"):
        with pytest.raises(ConfigError) as caught:
            requested(part, run=run)
        assert str(caught.value) == (
            "only: only the runs of a bisection leave steps out; found 'norm_train/train';"
            " expected no value: a run executes all steps of its chain"
        )


def test_only_comparisons_hand_over_leases() -> None:
    heir = {"lease_to": "20261206t000000-m-aaaaaaaaaaaaaaaa"}
    assert requested(heir, run="ab__42__1").lease_to == heir["lease_to"]
    for run in ("ci__42", "weekly__1", "manual__1", "confirm__1", "bisect__1"):
        with pytest.raises(ConfigError) as caught:
            requested(heir, run=run)
        assert str(caught.value) == (
            "lease_to: only the runs of an A/B comparison hand over their leases;"
            f" found '{heir['lease_to']}'; expected no value"
        )


@pytest.mark.parametrize(
    ("key", "param"),
    [
        ("--max-pairs", "max_pairs"),
        ("--skip, --take", "skip, take"),
        ("--topology", "topologies"),
        ("--sha256", "sha256_b"),
        ("framework_sha256", "sha256_b"),
        ("slots.train_trainer", "slots.train_trainer"),
        ("", ""),
    ],
)
def test_error_of_shared_code_names_the_param_and_keeps_its_text(key: str, param: str) -> None:
    names = {"--topology": "topologies", "framework_sha256": "sha256_b"}
    shared = ConfigError(
        "is wrong", key=key, found="--seed={seed}", expected="for example --seed={seed}", hint="h"
    )
    error = param_error(shared, names)
    assert error.key == param
    assert (error.what, error.found, error.expected, error.hint) == (
        "is wrong",
        shared.found,
        shared.expected,
        "h",
    )

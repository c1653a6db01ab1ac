"""The DAG files that we ship, read as Airflow's dag-processor reads them."""

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from airflow.dag_processing.dagbag import BundleDagBag
from airflow.sdk import DAG
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.exceptions import ParamValidationError
from airflow.serialization.serialized_objects import DagSerialization
from tests.support.stories import copy_example

from tipcflow.cli.importing.command import STUB
from tipcflow.config.access.roles import DECISION_DAGS
from tipcflow.domain import dag_id_of
from tipcflow_operators.chain.params import allowed
from tipcflow_operators.tasks.request import RUN_PARAMS, read_conf

ROOT = Path(__file__).parents[2]
CHAINS = {
    "mobilenet_v3_small.mobilenet_v3_small.train_fleet_infer_python",
    "mobilenet_v3_small.mobilenet_v3_small.train_infer_python",
    "mobilenet_v3_small.mobilenet_v3_small.train_linux_gpu_fleet_amp_infer_python_linux_gpu_cpu",
    "mobilenet_v3_small.mobilenet_v3_small.train_linux_gpu_fleet_fpgm_infer_python_linux_gpu_cpu",
    "mobilenet_v3_small.mobilenet_v3_small.train_linux_gpu_fleet_normal_infer_python_linux_gpu_cpu",
    "mobilenet_v3_small.mobilenet_v3_small.train_linux_gpu_fleet_pact_infer_python_linux_gpu_cpu",
    "mobilenet_v3_small.mobilenet_v3_small.train_ptq_infer_python",
    *(
        f"pytorch_multinode.{test}.train_{launch}"
        for test in ("toy", "mnist", "data")
        for launch in ("init_method", "torchrun")
    ),
    "parameter_server.sparse_embedding.train_ps",
    "parameter_server.sparse_embedding.train_ps_one_node",
}
OTHERS = {"ab", "bisect", "certify", "confirm", "weekly", "maintenance", "pull_request", "scaling", *DECISION_DAGS}
ALL = sorted(CHAINS | OTHERS)
# What Airflow's form has a widget for.
WIDGETS = {"string", "integer", "number", "boolean", "array"}


@cache
def bag() -> BundleDagBag:
    # safe_mode passes over files that do not look like DAGs, as the dag-processor does.
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TIPCFLOW_HOME", "TIPCFLOW_WEEKLY_CRON"):
            patch.delenv(name, raising=False)
        patch.setenv("TIPCFLOW_CONFIG_DIR", str(ROOT / "configs"))
        return BundleDagBag(
            dag_folder=str(ROOT / "dags"), bundle_path=ROOT / "dags", bundle_name="shipped", safe_mode=True
        )


@pytest.fixture(params=ALL)
def dag(request: pytest.FixtureRequest) -> DAG:
    return bag().dags[request.param]


@pytest.fixture(params=sorted(CHAINS))
def chain(request: pytest.FixtureRequest) -> DAG:
    return bag().dags[request.param]


def test_dag_bag_has_exactly_the_shipped_dags() -> None:
    assert bag().import_errors == {}
    assert not bag().captured_warnings
    assert set(bag().dags) == CHAINS | OTHERS


def test_every_params_file_of_the_catalog_is_a_dag() -> None:
    paths = (ROOT / "configs" / "chains").glob("*/*/*.txt")
    assert {dag_id_of("/".join(path.parts[-3:]).removesuffix(".txt")) for path in paths} == CHAINS


def test_every_suite_of_the_catalog_has_the_file_that_import_writes() -> None:
    suites = {path.name for path in (ROOT / "configs" / "chains").iterdir()}
    stubs = {path.stem.removeprefix("chains_"): path.read_text() for path in ROOT.glob("dags/chains_*.py")}
    assert stubs == {suite: STUB.format(suite=suite) for suite in suites}


def test_files_hold_no_logic() -> None:
    longest = max(len(path.read_text().splitlines()) for path in ROOT.glob("dags/*.py"))
    assert longest <= 25


def test_dags_have_docs_a_description_and_tags(dag: DAG) -> None:
    assert dag.doc_md is not None
    assert dag.doc_md.startswith("### ")
    assert len(dag.doc_md) > 150
    assert dag.description
    assert "tipcflow" in dag.tags
    assert dag.owner == "tipcflow"


def test_tasks_have_docs(dag: DAG) -> None:
    unsaid = [task.task_id for task in dag.tasks if len(task.doc_md or "") < 30]
    assert unsaid == []


def test_a_chain_is_found_by_its_suite_and_model(chain: DAG) -> None:
    suite, model, file = chain.dag_id.split(".")
    assert chain.tags == {"tipcflow", "chain", suite, model}
    assert chain.dag_display_name == chain.dag_id.replace(".", "/")
    assert chain.dag_display_name in chain.doc_md
    assert f"{model}/{file}.txt" in chain.doc_md


def test_only_weekly_and_maintenance_are_scheduled(dag: DAG) -> None:
    scheduled = dag.dag_id in ("weekly", "maintenance")
    assert dag.timetable.can_be_scheduled is scheduled
    assert dag.catchup is False
    # What costs a cluster a weekend is switched on by a user.
    assert dag.is_paused_upon_creation is (dag.dag_id == "weekly")


def test_several_runs_of_a_chain_may_wait_for_slots_at_once(dag: DAG) -> None:
    assert (dag.max_active_runs > 1) is not (dag.dag_id in ("weekly", "maintenance", "pull_request"))


def test_nothing_skips_the_teardowns(dag: DAG) -> None:
    # Airflow skips teardowns too when it stops a run for its time or for its first failure.
    assert dag.dagrun_timeout is None
    assert dag.fail_fast is False


def test_task_of_a_killed_worker_is_retried(dag: DAG) -> None:
    # The user sees a decision that failed; sweeps run again in an hour.
    if dag.dag_id == "maintenance" or dag.dag_id in DECISION_DAGS:
        assert {task.retries for task in dag.tasks} == {0}
        return
    assert {task.retries for task in dag.tasks} == {2}
    assert max(task.retry_delay.total_seconds() for task in dag.tasks) <= 30


def test_a_dag_survives_being_stored(dag: DAG) -> None:
    stored = json.loads(json.dumps(DagSerialization.to_dict(dag)))
    DagSerialization.validate_schema(stored)
    read = DagSerialization.from_dict(stored)
    assert read.task_ids == dag.task_ids
    assert {task.task_id: task.downstream_task_ids for task in read.tasks} == {
        task.task_id: task.downstream_task_ids for task in dag.tasks
    }
    assert read.params.dump() == dag.params.dump()


def test_tasks_carry_no_copies_of_their_dags_params() -> None:
    # Each would be validated and stored: ten times the work for a thousand chains.
    for chain in CHAINS | {"certify"}:
        tasks = DagSerialization.to_dict(bag().dags[chain])["dag"]["tasks"]
        assert [task["__var"]["task_id"] for task in tasks if "params" in task["__var"]] == []
        assert [t["__var"]["task_id"] for t in tasks if "params" in t["__var"].get("partial_kwargs", {})] == []


def test_params_make_a_form(dag: DAG) -> None:
    for name, param in dag.params.items():
        kinds = param.schema["type"]
        assert set([kinds] if isinstance(kinds, str) else kinds) - {"null"} <= WIDGETS, name
        assert param.schema["title"], name
        assert len(param.description or "") > 15, name
        jsonschema.Draft7Validator.check_schema(param.schema)


def test_default_params_are_valid_for_resolve() -> None:
    for chain in CHAINS:
        params = bag().dags[chain].params
        assert tuple(sorted(params)) == tuple(sorted(RUN_PARAMS))
        conf = read_conf(params.validate(), allowed=allowed(chain=True))
        assert (conf.mode, conf.repeats, conf.diagnose, conf.policy) == ("lite_train_lite_infer", 1, False, "pr")
        assert (conf.suite_ref, conf.framework, conf.seed) == (None, None, None)
    params = bag().dags["certify"].params
    assert read_conf(params.validate(), allowed=allowed(chain=False)).suite == "mobilenet_v3_small"
    assert bag().dags["weekly"].params.validate()["mode"] == "whole_train_whole_infer"


@pytest.mark.parametrize(
    "wrong",
    [
        {"mode": "lite"},
        {"mode": None},
        {"cluster": ""},
        {"repeats": 0},
        {"repeats": 21},
        {"repeats": "2"},
        {"seed": "7"},
        {"seed": 1.5},
        {"diagnose": "yes"},
        {"policy": "strict"},
        {"suite_ref": 3},
        {"framework": ["paddlepaddle"]},
    ],
    ids=str,
)
def test_airflow_refuses_invalid_params(chain: DAG, wrong: dict[str, Any]) -> None:
    params = ParamsDict(dict(chain.params.items()))
    with pytest.raises(ParamValidationError, match=next(iter(wrong))):
        params.update(wrong)


def test_clusters_and_policies_of_the_configs_are_offered(tmp_path: Path) -> None:
    from tipcflow_operators.chain.dag import chain_dags

    configs = tmp_path / "configs"
    shutil.copytree(ROOT / "configs", configs)
    copy_example(configs / "clusters" / "a100.yaml")
    shutil.copy(configs / "policies" / "pr.yaml", configs / "policies" / "strict.yaml")
    dag = next(iter(chain_dags("mobilenet_v3_small", configs).values()))
    assert dag.params["cluster"] == "a100"
    assert dag.params.get_param("cluster").schema["examples"] == ["a100", "compose", "example"]
    assert dag.params.get_param("policy").schema["enum"] == ["pr", "strict", "weekly"]


@pytest.fixture
def one_task(monkeypatch: pytest.MonkeyPatch) -> str:
    """Airflow reads a file for one task."""
    dag_id = sorted(CHAINS)[1]
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", dag_id)
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_TASK_ID", "resolve")
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(ROOT / "configs"))
    return dag_id


def test_the_process_of_a_task_makes_its_own_dag_alone(one_task: str) -> None:
    stub = ROOT / "dags" / "chains_mobilenet_v3_small.py"
    found = BundleDagBag(dag_folder=str(stub), bundle_path=stub.parent, bundle_name="shipped", safe_mode=False)
    assert set(found.dags) == {one_task}
    assert DagSerialization.to_dict(found.dags[one_task]) == DagSerialization.to_dict(bag().dags[one_task])

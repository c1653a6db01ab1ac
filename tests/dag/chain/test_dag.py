"""The graph of a chain: which tasks, in which order, and what runs whatever happened before."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG, TaskGroup
from airflow.sdk.definitions.mappedoperator import MappedOperator
from airflow.sdk.definitions.param import process_params
from airflow.serialization.serialized_objects import DagSerialization

from tipcflow.domain import ConfigError
from tipcflow_operators.chain import catalog, docs
from tipcflow_operators.chain.catalog import chains_of
from tipcflow_operators.chain.dag import certify_dag, chain_dag, chain_dags
from tipcflow_operators.tasks.phases import ResolveOperator
from tipcflow_operators.tasks.request import CHAIN_PARAMS, RUN_PARAMS
from tipcflow_operators.tasks.step import StepOperator

ROOT = Path(__file__).parents[3]
SUITE = "mobilenet_v3_small"
SAMPLE = ROOT / "configs" / "chains" / SUITE / SUITE / "train_infer_python.txt"
ONE = "norm_train_gpus_0_autocast_null_nodes_1"
TWO = "norm_train_gpus_0-1_autocast_null_nodes_1"
ENDING = {("collect", "release"), ("release", "judge"), ("judge", "verdict")}
BEGINNING = {("resolve", "acquire"), ("acquire", "prepare"), ("resolve", "prepare")}
TEARDOWNS = ("collect", "release", "judge", "verdict")
STEPS = ("train", "eval", "export", "infer_cpu", "infer_gpu")


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    folder = tmp_path / "configs"
    shutil.copytree(ROOT / "configs", folder, ignore=shutil.ignore_patterns("chains"))
    return folder


def add(configs: Path, text: str | bytes, model: str = "model", name: str = "train_infer_python") -> str:
    """A params file of the catalog; the id of its DAG."""
    path = configs / "chains" / SUITE / model / f"{name}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return f"{SUITE}.{model}.{name}"


def sample(groups: str = "0") -> str:
    return SAMPLE.read_text().replace("gpu_list:0\n", f"gpu_list:{groups}\n")


def dag_of(configs: Path, text: str | bytes) -> DAG:
    dag_id = add(configs, text)
    return chain_dags(SUITE, configs)[dag_id]


def edges(dag: DAG) -> set[tuple[str, str]]:
    return {(task.task_id, after) for task in dag.tasks for after in task.downstream_task_ids}


def variant(group: str) -> set[tuple[str, str]]:
    """What is between a training and the inferences of one variant; the names of nodes come from resolve."""
    return {
        ("resolve", f"{group}.train"),
        (f"{group}.train", f"{group}.eval"),
        (f"{group}.eval", f"{group}.export"),
        (f"{group}.export", f"{group}.infer_cpu"),
        (f"{group}.export", f"{group}.infer_gpu"),
    }


def last(group: str) -> set[tuple[str, str]]:
    """After the last variant. Also directly to the verdict: who clears failed tasks alone leaves those between."""
    return inferred(group, "collect") | inferred(group, "verdict") | ENDING


def inferred(group: str, then: str) -> set[tuple[str, str]]:
    return {(f"{group}.infer_cpu", then), (f"{group}.infer_gpu", then)}


def test_graph_has_one_group_for_a_single_variant(configs: Path) -> None:
    dag = dag_of(configs, sample())
    expected = BEGINNING | {("prepare", f"{ONE}.train")} | variant(ONE) | last(ONE)
    assert edges(dag) == expected
    assert len(dag.tasks) == 12


def test_two_variants_run_one_after_the_other(configs: Path) -> None:
    dag = dag_of(configs, sample("0|0,1"))
    expected = BEGINNING | {("prepare", f"{ONE}.train")} | variant(ONE) | inferred(ONE, f"{TWO}.train")
    assert edges(dag) == expected | variant(TWO) | last(TWO)
    assert len(dag.tasks) == 17


def rules(dag: DAG, *tasks: str) -> list[str]:
    found = [dag.get_task(name).trigger_rule for name in tasks]
    return [getattr(rule, "value", rule) for rule in found]


def test_steps_query_the_database_and_not_the_states_of_tasks(configs: Path) -> None:
    # A task is red when one of its steps is; what the others made is still evaluated, exported and inferred.
    dag = dag_of(configs, sample("0|0,1"))
    for group in (ONE, TWO):
        assert set(rules(dag, *(f"{group}.{kind}" for kind in STEPS[1:]))) == {"all_done"}


def test_a_later_variant_runs_also_when_an_earlier_one_failed(configs: Path) -> None:
    dag = dag_of(configs, sample("0|0,1"))
    assert rules(dag, f"{ONE}.train", f"{TWO}.train") == ["none_failed", "all_done"]


def test_training_starts_after_nodes_are_acquired(configs: Path) -> None:
    assert set(rules(dag_of(configs, sample()), "resolve", "acquire", "prepare")) == {"all_success"}


def test_run_is_collected_released_and_judged_after_any_failure(configs: Path) -> None:
    dag = dag_of(configs, sample())
    assert [task.task_id for task in dag.tasks if task.is_teardown] == list(TEARDOWNS)
    # A teardown whose setup failed is skipped, so there are none.
    assert [task.task_id for task in dag.tasks if task.is_setup] == []
    # What a user sees in red is the verdict, and nothing else decides.
    assert [task.task_id for task in dag.tasks if task.on_failure_fail_dagrun] == ["verdict"]
    assert set(rules(dag, *TEARDOWNS)) == {"all_done_setup_success"}


def test_prepare_and_train_are_one_task_per_node_named_after_the_node(configs: Path) -> None:
    dag = dag_of(configs, sample("0|0,1"))
    mapped = [task for task in dag.tasks if isinstance(task, MappedOperator)]
    assert [task.task_id for task in mapped] == ["prepare", f"{ONE}.train", f"{TWO}.train"]
    assert {task.map_index_template for task in mapped} == {"{{ task.node }}"}
    for task in mapped:
        assert task.operator_class is StepOperator
        assert list(task.expand_input.value) == ["node"]
        assert task.expand_input.value["node"].operator.task_id == "resolve"


def test_every_group_runs_its_own_variant(configs: Path) -> None:
    dag = dag_of(configs, sample("0|0,1"))
    declared = ("norm_train_gpus_0_autocast_null_nodes_1", "norm_train_gpus_0,1_autocast_null_nodes_1")
    for number, (group, name) in enumerate(zip((ONE, TWO), declared, strict=True)):
        child = dag.task_group.get_child_by_label(group)
        assert isinstance(child, TaskGroup)
        assert child.tooltip == name
        for kind in STEPS:
            task = dag.get_task(f"{group}.{kind}")
            report = task.partial_kwargs if isinstance(task, MappedOperator) else vars(task)
            assert (report["kind"], report["group"], tuple(report["variants"])) == (kind, number, declared)


def test_every_task_has_its_own_docs(configs: Path) -> None:
    dag = dag_of(configs, sample())
    assert {task.task_id.rpartition(".")[2]: task.doc_md for task in dag.tasks} == docs.TASKS


def test_docs_of_a_chain_list_the_variants_by_their_names(configs: Path) -> None:
    doc = dag_of(configs, sample("0|0,1")).doc_md
    assert "* `norm_train_gpus_0_autocast_null_nodes_1`\n* `norm_train_gpus_0,1_autocast_null_nodes_1`\n" in doc


def test_resolve_has_the_chain_and_the_allowed_params(configs: Path) -> None:
    resolve = dag_of(configs, sample()).get_task("resolve")
    assert isinstance(resolve, ResolveOperator)
    assert (resolve.suite, resolve.params_file) == (SUITE, "model/train_infer_python.txt")
    assert resolve.allowed == RUN_PARAMS
    generic = certify_dag(configs).get_task("resolve")
    assert (generic.suite, generic.params_file) == ("", "")
    assert generic.allowed == (*CHAIN_PARAMS, *RUN_PARAMS)


def test_the_generic_dag_has_room_for_one_variant(configs: Path) -> None:
    expected = BEGINNING | {("prepare", "variant.train")} | variant("variant")
    assert edges(certify_dag(configs)) == expected | last("variant")


@pytest.mark.parametrize(
    "text",
    ["", "no params file\n", sample("0").replace("norm_train:train.py", "norm_train:null"), b"\xff\xfe\x00"],
    ids=["empty", "something else", "nothing to train", "no text"],
)
def test_file_without_a_plan_has_a_dag_with_one_variant(configs: Path, text: str | bytes) -> None:
    dag = dag_of(configs, text)
    expected = BEGINNING | {("prepare", "variant.train")} | variant("variant")
    assert edges(dag) == expected | last("variant")
    assert "(those of the params file at the tested ref)" in dag.doc_md


def test_invalid_file_does_not_affect_other_chains(configs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_plan = catalog.build_plan

    def broken(text: str, **more: Any) -> Any:
        if "/bad/" in more["file"]:
            raise KeyError("a defect of ours")
        return build_plan(text, **more)

    monkeypatch.setattr(catalog, "build_plan", broken)
    good, bad = add(configs, sample(), "good"), add(configs, sample(), "bad")
    dags = chain_dags(SUITE, configs)
    assert set(dags) == {good, bad}
    assert f"{ONE}.train" in dags[good].task_ids
    assert "variant.train" in dags[bad].task_ids


def test_chain_of_an_invalid_suite_file_has_a_dag(configs: Path) -> None:
    name = add(configs, sample())
    (configs / "suites" / f"{SUITE}.yaml").write_text("folder: [")
    assert "variant.train" in chain_dags(SUITE, configs)[name].task_ids


def test_variants_with_unusual_names_become_valid_task_groups(configs: Path) -> None:
    add(configs, sample())
    chain = chains_of(SUITE, configs)[0]
    outliers = ("a,b", "a-b", "ä ö", "x" * 300, "x" * 301, "192.168.0.1;0", "..", "")
    chain.__dict__["variants"] = outliers
    dag = chain_dag(chain, {})
    assert len(dag.tasks) == 7 + 5 * len(outliers)
    DagSerialization.validate_schema(DagSerialization.to_dict(dag))
    groups = [child.group_id for child in dag.task_group.children.values() if isinstance(child, TaskGroup)]
    assert [dag.get_task(f"{group}.eval").group for group in groups] == list(range(len(outliers)))


def test_long_names_are_dags_too(configs: Path) -> None:
    add(configs, sample(), "m" * 120, "f" * 150)
    (dag,) = chain_dags(SUITE, configs).values()
    assert len(dag.dag_id) <= 250
    assert max(map(len, dag.tags)) <= 100


def test_two_files_whose_dags_would_have_one_id_are_an_error(configs: Path) -> None:
    add(configs, sample(), "resnet.50")
    add(configs, sample(), "resnet_50")
    with pytest.raises(ConfigError) as caught:
        chain_dags(SUITE, configs)
    assert caught.value.found == f"{SUITE}.resnet_50.train_infer_python"
    assert "resnet.50" in str(caught.value)
    assert "resnet_50/train_infer_python.txt" in caught.value.file


@pytest.mark.parametrize("model", ["model", "resnet.50", "m" * 240])
def test_a_task_gets_the_same_dag_that_the_scheduler_has(
    configs: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    add(configs, sample(), "another")
    add(configs, sample("0|0,1"), model)
    both = chain_dags(SUITE, configs)
    (wanted,) = (dag_id for dag_id in both if "another" not in dag_id)
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", wanted)
    alone = chain_dags(SUITE, configs)
    assert list(alone) == [wanted]
    assert DagSerialization.to_dict(alone[wanted]) == DagSerialization.to_dict(both[wanted])


@pytest.mark.parametrize("wanted", ["weekly", "a.b.c", f"{SUITE}.model.other", f"{SUITE}....", "x" * 250])
def test_a_dag_of_another_file_is_none_of_this_one(
    configs: Path, monkeypatch: pytest.MonkeyPatch, wanted: str
) -> None:
    add(configs, sample())
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", wanted)
    assert chain_dags(SUITE, configs) == {}


def test_a_suite_without_chains_has_no_dags(configs: Path) -> None:
    assert chain_dags("nowhere", configs) == {}


def test_other_files_are_not_chains(configs: Path) -> None:
    name = add(configs, sample())
    root = configs / "chains" / SUITE
    (root / "README.md").write_text("")
    (root / "loose.txt").write_text(sample())
    (root / "model" / "notes.md").write_text("")
    assert list(chain_dags(SUITE, configs)) == [name]


def test_tasks_get_the_params_of_their_dag_and_of_the_run(configs: Path) -> None:
    dag = dag_of(configs, sample())
    for task in dag.tasks:
        report = process_params(dag, task, {"repeats": 3}, suppress_exception=False)
        assert (report["repeats"], report["policy"]) == (3, "pr"), task.task_id


def test_chains_share_no_params(configs: Path) -> None:
    one, two = add(configs, sample(), "one"), add(configs, sample(), "two")
    dags = chain_dags(SUITE, configs)
    dags[one].params["repeats"] = 7
    assert dags[two].params["repeats"] == 1

"""The chains of a suite: which files, which names, which groups."""

import logging
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipcflow.domain import ConfigError, dag_id_of
from tipcflow_operators.chain import catalog
from tipcflow_operators.chain.catalog import chain_of, chains_of, group_ids
from tipcflow_operators.chain.docs import chain_doc
from tipcflow_operators.weekly.choice import without_mode

ROOT = Path(__file__).parents[4]
SUITE = "mobilenet_v3_small"
SAMPLE = (ROOT / "configs" / "chains" / SUITE / SUITE / "train_infer_python.txt").read_text()


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    (tmp_path / "suites").mkdir()
    described = (ROOT / "configs" / "suites" / f"{SUITE}.yaml").read_text()
    (tmp_path / "suites" / "s.yaml").write_text(described.replace(f"name: {SUITE}", "name: s"))
    return tmp_path


def add(configs: Path, name: str, text: str = SAMPLE) -> None:
    path = configs / "chains" / "s" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_a_chain_has_the_names_of_its_suite_folder_and_file(configs: Path) -> None:
    add(configs, "resnet/train_infer.txt")
    (chain,) = chains_of("s", configs)
    assert (chain.suite, chain.name) == ("s", "s/resnet/train_infer")
    assert (chain.dag_id, chain.params_file) == ("s.resnet.train_infer", "resnet/train_infer.txt")
    assert chain.variants == ("norm_train_gpus_0_autocast_null_nodes_1",)


def test_chains_come_in_the_order_of_their_paths(configs: Path) -> None:
    names = ["b/a.txt", "a/z.txt", "a/b.txt", "B/c.txt"]
    for name in names:
        add(configs, name, "")
    assert [chain.params_file for chain in chains_of("s", configs)] == sorted(names)


def test_only_text_files_of_models_are_chains(configs: Path) -> None:
    add(configs, "a/b.txt", "")
    for other in ("README.md", "loose.txt", "a/notes.md", "a/deeper/c.txt"):
        add(configs, other, "")
    assert [chain.name for chain in chains_of("s", configs)] == ["s/a/b"]
    assert chains_of("nowhere", configs) == []


def test_variants_are_read_once_and_the_suite_once_for_all(configs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    load_suite, build_plan = catalog.load_suite, catalog.build_plan
    monkeypatch.setattr(
        catalog, "load_suite", lambda name, folder: (reads.append(name), load_suite(name, folder))[1]
    )
    monkeypatch.setattr(
        catalog, "build_plan", lambda text, **more: (reads.append(more["chain"]), build_plan(text, **more))[1]
    )
    add(configs, "a/b.txt")
    add(configs, "a/c.txt")
    chains = chains_of("s", configs)
    assert reads == []
    assert [chain.variants for chain in chains] == [chain.variants for chain in chains]
    assert reads == ["s", "s/a/b", "s/a/c"]


@pytest.mark.parametrize(
    "text", ["", "nothing of ours\n", SAMPLE.replace("norm_train:train.py", "norm_train:null")]
)
def test_a_file_that_cannot_be_planned_has_no_variants(
    configs: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    add(configs, "a/b.txt", text)
    assert chains_of("s", configs)[0].variants == ()
    # `resolve` reports that to the user who runs the chain.
    assert caplog.messages == []


def test_a_suite_that_cannot_be_read_has_chains_without_variants(configs: Path) -> None:
    add(configs, "a/b.txt")
    (configs / "suites" / "s.yaml").write_text("name: s\nfolder: x\n")
    assert chains_of("s", configs)[0].variants == ()


def test_unknown_dialect_is_a_message_in_the_doc_of_each_chain(configs: Path) -> None:
    add(configs, "a/b.txt")
    file = configs / "suites" / "s.yaml"
    file.write_text("name: s\nfolder: x\ndialects:\n  - models/template\n  - models/templat\n")
    (chain,) = chains_of("s", configs)
    assert chain.dialects.problem.startswith(
        f"{file}:5: dialects.1: there is no such dialect; found 'models/templat'; expected one of "
    )
    assert chain.dialects.problem.endswith("\n  hint: did you mean models/template?")
    doc = chain_doc(chain.name, chain.params_file, chain.variants, chain.dialects.problem)
    assert f"until this is fixed:**\n\n```\n{chain.dialects.problem}\n```\n" in doc
    assert "until this is fixed" not in chain_doc(chain.name, chain.params_file, chain.variants)


def test_chain_of_an_unknown_dialect_is_not_without_the_mode(configs: Path) -> None:
    add(configs, "a/b.txt")
    (configs / "suites" / "s.yaml").write_text("name: s\nfolder: x\ndialects: [models/templat]\n")
    assert without_mode(["s/a/b"], "lite_train_lite_infer", configs) == {}


def test_defect_of_tipcflow_is_logged_and_costs_one_file_its_variants(
    configs: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr(catalog, "build_plan", broken)
    add(configs, "a/b.txt")
    with caplog.at_level(logging.ERROR):
        assert chains_of("s", configs)[0].variants == ()
    assert len(caplog.records) == 1
    assert caplog.messages[0].startswith("cannot build the graph of ")
    assert caplog.records[0].exc_info is not None


def test_two_chains_with_one_dag_id_are_an_error_that_names_both(configs: Path) -> None:
    add(configs, "a.b/f.txt")
    add(configs, "a_b/f.txt")
    with pytest.raises(ConfigError) as caught:
        chains_of("s", configs)
    assert caught.value.found == "s.a_b.f"
    assert "a.b/f.txt" in str(caught.value)
    assert "a_b/f.txt" in str(caught.value)


@pytest.mark.parametrize("name", ["resnet/train", "res.net/tr ain", "ä/ö", "m" * 200 + "/" + "f" * 200])
def test_a_chain_is_found_by_the_id_of_its_dag(configs: Path, name: str) -> None:
    add(configs, f"{name}.txt")
    add(configs, "other/train.txt")
    found = chain_of("s", configs, dag_id_of(f"s/{name}"))
    assert found is not None
    assert found.name == f"s/{name}"
    assert len(found.variants) == 1


def test_no_folder_is_listed_if_the_id_is_the_name(configs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add(configs, "resnet/train.txt")
    monkeypatch.setattr(catalog, "chains_of", lambda *_: pytest.fail("listed"))
    assert chain_of("s", configs, "s.resnet.train") is not None


@pytest.mark.parametrize("dag_id", ["", "s", "s.resnet", "s.resnet.other", "t.resnet.train", "s...", "weekly"])
def test_an_id_of_no_chain_finds_none(configs: Path, dag_id: str) -> None:
    add(configs, "resnet/train.txt")
    assert chain_of("s", configs, dag_id) is None


@pytest.mark.parametrize(
    ("variants", "groups"),
    [
        (
            ["norm_train_gpus_0,1_autocast_amp_nodes_2"],
            ["norm_train_gpus_0-1_autocast_amp_nodes_2"],
        ),
        (["a,b", "a-b", "a b"], ["a-b", "a-b-2", "a-b-3"]),
        (["a-b-2", "a,b", "a-b"], ["a-b-2", "a-b", "a-b-3"]),
        (["", "..", "ä"], ["variant", "variant-2", "variant-3"]),
        ([], []),
    ],
)
def test_variants_are_grouped_by_name(variants: list[str], groups: list[str]) -> None:
    assert group_ids(variants) == groups


@given(st.lists(st.one_of(st.text(max_size=8), st.text("ab,-.", max_size=4), st.just("x" * 400)), max_size=12))
def test_group_ids_are_valid_and_unique(variants: list[str]) -> None:
    groups = group_ids(variants)
    assert len(groups) == len(variants)
    assert len(set(groups)) == len(groups)
    for group in groups:
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,200}", group)
        # The prefix before a task's own name is cut, so that the whole has no more than 250 characters.
        assert len(f"{group}.infer_cpu") <= 250

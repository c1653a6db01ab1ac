"""Chains whose history is too noisy for the gate, from stored runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.precedents import put_run
from tests.support.stories import a_run, open_store

from tipcflow.domain import ConfigError
from tipcflow.domain.run_documents import MergeBaseDocument
from tipcflow.execute.changes import NoisyChain, noisy_chains
from tipcflow.store import Store

pytestmark = pytest.mark.slow

CHAIN = a_run().chain


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "t.db") as opened:
        yield opened


def noisy(store: Store, folder: Path, rule: str = "{when: noisy, above: 0.1}", **place: str) -> list[NoisyChain]:
    (folder / "policies").mkdir(exist_ok=True)
    (folder / "policies" / "p.yaml").write_text(f"name: p\nfloors: {{speed: 0.02}}\nab: {rule}\n")
    where = {"mode": a_run().mode, "cluster": "local", "policy": "p", **place}
    return noisy_chains(store, [CHAIN, "sample/other/train"], config_dir=folder, **where)


def test_chain_is_noisy_if_the_gate_finds_large_changes_only(store: Store, tmp_path: Path) -> None:
    for number in range(16):
        put_run(store, number, noise=0.08)
    (found,) = noisy(store, tmp_path)
    assert found.chain == CHAIN
    assert found.smallest > 0.1
    assert found.why.startswith(f"the gate finds changes of {found.metric} from ")
    assert found.why.endswith("only, not from 10 %")
    assert noisy(store, tmp_path, "{when: noisy, above: 5}") == []
    assert noisy(store, tmp_path, "{when: never}") == []
    assert noisy(store, tmp_path, mode="whole_infer") == []


def test_quiet_or_short_history_is_not_noisy(store: Store, tmp_path: Path) -> None:
    for number in range(5):
        put_run(store, number, noise=0.2)
    assert noisy(store, tmp_path) == []
    for number in range(20, 40):
        put_run(store, number, noise=0.002)
    assert noisy(store, tmp_path) == []


def test_runs_of_changes_do_not_count(store: Store, tmp_path: Path) -> None:
    for number in range(16):
        run = put_run(store, number, noise=0.08)
        store.documents.put(run.id, MergeBaseDocument(commit="c", commits=("c",)))
    assert noisy(store, tmp_path) == []


def test_unknown_policy_is_an_error(store: Store, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unknown policy"):
        noisy(store, tmp_path, policy="none")

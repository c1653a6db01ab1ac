"""Suites whose framework no cluster has, where configuration files are missing or invalid."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.stories import a_run

from tipcflow.execute.overview.frameworks import Clusters
from tipcflow.store import Store

NODE = """name: {name}
nodes:
  - {{name: a, address: 192.0.2.1, python: /p, workspace: /w, frameworks: [{has}]}}
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'own.db'}") as store:
        yield store


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    for folder in ("suites", "clusters"):
        (tmp_path / folder).mkdir()
    (tmp_path / "suites" / "s.yaml").write_text("name: s\nfolder: .\ndialects: [models/template]\n")
    return tmp_path


def test_without_a_cluster_nothing_is_known(store: Store, configs: Path) -> None:
    (configs / "clusters" / "example.yaml").write_text(NODE.format(name="example", has="torch"))
    (configs / "clusters" / "broken.yaml").write_text("name: [\n")
    assert Clusters(store, configs).reasons("s") == ()
    assert Clusters(store, configs / "nowhere").reasons("s") == ()


def test_single_cluster_with_the_framework_suffices(store: Store, configs: Path) -> None:
    (configs / "clusters" / "one.yaml").write_text(NODE.format(name="one", has="torch"))
    assert Clusters(store, configs).reasons("s") == ("cluster one has no paddlepaddle",)
    (configs / "clusters" / "two.yaml").write_text(NODE.format(name="two", has="paddlepaddle"))
    assert Clusters(store, configs).reasons("s") == ()


def test_suite_that_cannot_be_read_has_no_reason(store: Store, configs: Path) -> None:
    (configs / "clusters" / "one.yaml").write_text(NODE.format(name="one", has=""))
    assert Clusters(store, configs).reasons("other") == ()


def test_cluster_of_another_installation_gives_no_reason(
    store: Store, configs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NODE_NETWORK", raising=False)
    text = NODE.format(name="compose", has="torch").replace("192.0.2.1", '"${NODE_NETWORK:-192.0.2}.1"')
    (configs / "clusters" / "compose.yaml").write_text(text)
    assert Clusters(store, configs).reasons("s") == ()
    store.runs.create(a_run(cluster="compose"))
    assert Clusters(store, configs).reasons("s") == ("cluster compose has no paddlepaddle",)

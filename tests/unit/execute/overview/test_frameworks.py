"""Suites whose framework no cluster has, where configuration files are missing or invalid."""

from pathlib import Path

import pytest

from tipcflow.execute.overview.frameworks import Clusters

NODE = """name: {name}
nodes:
  - {{name: a, address: 192.0.2.1, python: /p, workspace: /w, frameworks: [{has}]}}
"""


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    for folder in ("suites", "clusters"):
        (tmp_path / folder).mkdir()
    (tmp_path / "suites" / "s.yaml").write_text("name: s\nfolder: .\ndialects: [models/template]\n")
    return tmp_path


def test_without_a_cluster_nothing_is_known(configs: Path) -> None:
    (configs / "clusters" / "example.yaml").write_text(NODE.format(name="example", has="torch"))
    (configs / "clusters" / "broken.yaml").write_text("name: [\n")
    assert Clusters(configs).reasons("s") == ()
    assert Clusters(configs / "nowhere").reasons("s") == ()


def test_single_cluster_with_the_framework_suffices(configs: Path) -> None:
    (configs / "clusters" / "one.yaml").write_text(NODE.format(name="one", has="torch"))
    assert Clusters(configs).reasons("s") == ("cluster one has no paddlepaddle",)
    (configs / "clusters" / "two.yaml").write_text(NODE.format(name="two", has="paddlepaddle"))
    assert Clusters(configs).reasons("s") == ()


def test_suite_that_cannot_be_read_has_no_reason(configs: Path) -> None:
    (configs / "clusters" / "one.yaml").write_text(NODE.format(name="one", has=""))
    assert Clusters(configs).reasons("other") == ()

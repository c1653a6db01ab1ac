"""What `tipcflow local up` and `down` refuse before anything is started or stopped."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import a_run

from devcluster.keep.nodes import HEAD
from devcluster.keep.record import Record, read
from devcluster.local_nodes.processes import start_time
from tipcflow.cli.local.common import refuse_in_use, refuse_second, runs_on
from tipcflow.domain import ConfigError
from tipcflow.store import Store

Tipcflow = Callable[..., Any]


@pytest.fixture(autouse=True)
def configs(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration with one suite, and no nodes of other users of this machine."""
    folder, registry = tmp_path / "configs", tmp_path / "registry"
    for made in (folder / "clusters", folder / "suites", registry):
        made.mkdir(parents=True)
    suite = f"name: mine\nfolder: {tmp_path}\ndialects: [models/template]\nframework: torch\n"
    (folder / "suites" / "mine.yaml").write_text(suite)
    monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(folder))
    monkeypatch.setattr("devcluster.local_nodes.state.registry", lambda: registry)
    return folder


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--kind", "docker"), "--kind: unknown kind; found 'docker'; expected namespaces or loopback"),
        (("--device", "tpu"), "--device: unknown device; found 'tpu'; expected cpu or gpu"),
        (("--device", "gpu"), "--device: the local nodes' own environment has PaddlePaddle for CPUs; found 'gpu'"),
        (("--python", "/none/python"), "--python: no such interpreter; found '/none/python'"),
        (("--suite", "mine"), "the suite imports torch"),
        (("--suite", "none"), "none"),
    ],
)
def test_wrong_option_is_one_error_and_starts_nothing(
    tipcflow: Tipcflow, home: Path, configs: Path, arguments: tuple[str, ...], message: str
) -> None:
    result = tipcflow("local", "up", *arguments)
    assert result.code == 2
    assert message in result.err
    assert "Traceback" not in result.err
    assert list((configs / "clusters").iterdir()) == []
    assert read(home, "nodes") is None


def test_cluster_of_a_user_is_kept(tipcflow: Tipcflow, configs: Path) -> None:
    file = configs / "clusters" / "local.yaml"
    file.write_text("name: local\n")
    result = tipcflow("local", "up")
    assert result.code == 2
    assert f"{file}: this cluster was not written by `tipcflow local up`" in result.err
    assert file.read_text() == "name: local\n"


def of_this_process(**fields: Any) -> Record:
    return Record("nodes", os.getpid(), start_time(os.getpid()), 1000.0, **fields)


def test_second_start_is_refused(tipcflow: Tipcflow, home: Path) -> None:
    of_this_process(ready=True).save(home)
    result = tipcflow("local", "up", "--python", sys.executable)
    assert result.code == 2
    assert f"local nodes are already running; found 'process {os.getpid()}, since" in result.err


@pytest.mark.parametrize("record", [None, Record("nodes", 1, 1, 0.0), of_this_process(failed="ended")])
def test_start_after_an_end_is_not_refused(record: Record | None) -> None:
    refuse_second(record, what="local nodes are", down="tipcflow local down")


def test_down_without_nodes_removes_an_outdated_cluster_file(tipcflow: Tipcflow, configs: Path) -> None:
    file = configs / "clusters" / "local.yaml"
    file.write_text(f"{HEAD}name: local\n")
    result = tipcflow("local", "down")
    assert (result.code, result.err) == (0, "no local nodes are running\n")
    assert not file.exists()


def test_nodes_in_use_are_named_by_their_runs(database: Path) -> None:
    url = f"sqlite:///{database}"
    with Store.open(url) as store:
        run = a_run("r1", created_at=store.now())
        store.runs.create(run, None)
        assert store.leases.acquire(run.id, [("10.0.0.1", 0)], owner="me", ttl_s=60)
    assert runs_on(["10.0.0.1"], url) == ["r1"]
    assert runs_on(["10.0.0.2"], url) == []
    assert runs_on(["10.0.0.1"], f"sqlite:///{database}.none") == []
    with pytest.raises(ConfigError, match="the local nodes are in use; found 'r1'"):
        refuse_in_use(["r1"], what="the local nodes are")
    refuse_in_use([], what="the local nodes are")

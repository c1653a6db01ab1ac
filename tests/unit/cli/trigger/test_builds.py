"""`tipcflow trigger` for a framework build: Airflow names the chains, and nothing starts after an error."""

import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.support.airflow.fake import FakeAirflow
from tests.support.airflow.trigger import CHAIN, DAG, OTHER, Tipcflow, facts, passing
from tests.support.framework.wheels import make_wheel, sha256_of

from tipcflow.cli.trigger import builds
from tipcflow.domain import ConfigError

pytestmark = pytest.mark.slow

PARAMS = {"repository": "o/r", "mode": "lite_train_lite_infer", "cluster": "lab", "policy": "pr"}
NONE = "0" * 64


def declare(airflow: FakeAirflow, *chains: str, **params: str) -> None:
    runs = [{"chain": chain, **PARAMS, **params, "a_field_of_tomorrow": 1} for chain in chains]
    airflow.builds = 200, {"framework": "toyframe 1.0", "runs": runs}


@pytest.fixture
def two(airflow: FakeAirflow) -> FakeAirflow:
    """Three chains, of which two certify builds."""
    for dag in (DAG, OTHER, "sample.third.train_infer_python"):
        airflow.add(dag, passing())
    declare(airflow, CHAIN, OTHER.replace(".", "/"))
    return airflow


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{made.server_port}"
        made.shutdown()
        thread.join(10)


def confs(airflow: FakeAirflow) -> dict[str, Any]:
    return {dag: run["conf"] for (dag, _), run in airflow.runs.items()}


def test_release_runs_exactly_the_declared_chains(tipcflow: Tipcflow, two: FakeAirflow) -> None:
    result = tipcflow("trigger", "--framework", "toyframe==1.0", "--policy", "weekly", "--wait")
    assert (result.code, result.out.splitlines()[-1]) == (0, "pass")
    conf = {"mode": PARAMS["mode"], "cluster": "lab", "policy": "weekly", "framework": "toyframe==1.0"}
    assert confs(two) == {DAG: conf, OTHER: conf}
    assert "toyframe 1.0: 2 runs, declared by o/r" in result.err


def test_a_worse_chain_decides(tipcflow: Tipcflow, two: FakeAirflow) -> None:
    two.add(OTHER, ("failed", facts("regression", "slower")))
    result = tipcflow("trigger", "--framework", "toyframe==1.0", "--wait")
    assert (result.code, result.out.splitlines()[-1]) == (1, "regression")


def test_a_wheel_can_have_an_address(tipcflow: Tipcflow, two: FakeAirflow, site: str, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    url = f"{site}/{wheel.name}"
    right = tipcflow("trigger", "--framework-wheel", url, "--sha256", sha256_of(wheel))
    assert right.code == 0, right.err
    assert {conf["framework_wheel"] for conf in confs(two).values()} == {url}
    assert {conf["framework_sha256"] for conf in confs(two).values()} == {sha256_of(wheel)}
    assert len(two.runs) == 2


def test_wrong_hash_is_one_error_and_starts_nothing(
    tipcflow: Tipcflow, two: FakeAirflow, site: str, tmp_path: Path
) -> None:
    wheel = make_wheel(tmp_path)
    result = tipcflow("trigger", "--framework-wheel", f"{site}/{wheel.name}", "--sha256", NONE)
    assert result.code == 2
    assert result.err.count("has another hash") == 1
    missing = tipcflow("trigger", "--framework-wheel", f"{site}/x-1-py3-none-any.whl", "--sha256", NONE)
    assert (missing.code, missing.err.count("cannot be fetched")) == (2, 1)
    assert two.runs == {}


def test_address_that_only_airflow_reaches(tipcflow: Tipcflow, two: FakeAirflow) -> None:
    result = tipcflow("trigger", "--framework-wheel", "http://127.0.0.1:1/x-1-py3-none-any.whl", "--sha256", NONE)
    assert (result.code, len(two.runs)) == (0, 2)
    assert "the runs check its hash" in result.err


@pytest.mark.parametrize(
    ("response", "words"),
    [
        ((422, {"detail": "builds: no repository declares the chains; found 'x'"}), "no repository declares"),
        ((404, {"detail": "no page"}), "cannot select the chains of a build"),
        ((403, {"detail": "these pages require permission"}), "denies this login"),
        ((200, "<html>"), "has no Certification page"),
    ],
)
def test_trigger_reports_a_build_that_airflow_refuses(
    tipcflow: Tipcflow, two: FakeAirflow, response: tuple[int, Any], words: str
) -> None:
    two.builds = response
    result = tipcflow("trigger", "--framework", "toyframe==1.0")
    assert (result.code, two.runs) == (2, {})
    assert words in result.err


def test_a_chain_that_cannot_start_stops_all(tipcflow: Tipcflow, two: FakeAirflow) -> None:
    two.add(OTHER, paused=True)
    result = tipcflow("trigger", "--framework", "toyframe==1.0")
    assert (result.code, two.runs) == (2, {})
    assert f"DAG {OTHER} is paused" in result.err
    assert tipcflow("trigger", "--framework", "toyframe==1.0", "--unpause").code == 0
    declare(two, CHAIN, "sample/missing/train_infer_python")
    missing = tipcflow("trigger", "--framework", "toyframe==2.0")
    assert (missing.code, len(two.runs)) == (2, 2)
    assert "has no DAG sample.missing.train_infer_python" in missing.err


def test_named_chains_replace_the_declared_ones(tipcflow: Tipcflow, two: FakeAirflow) -> None:
    assert tipcflow("trigger", CHAIN, "--framework", "toyframe==1.0").code == 0
    assert confs(two) == {DAG: {"framework": "toyframe==1.0"}}
    assert ("GET", "/certification/api/builds") not in two.requests


def test_nothing_named_is_an_error(tipcflow: Tipcflow, two: FakeAirflow) -> None:
    result = tipcflow("trigger", "--mode", "lite_train_lite_infer")
    assert (result.code, two.runs) == (2, {})
    assert "only a framework build" in result.err


def test_path_is_copied_to_a_local_airflow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path)
    with pytest.raises(ConfigError, match="is not on the machine of Airflow"):
        builds.wheel_params(str(wheel), NONE)
    monkeypatch.setattr(builds, "local_home", lambda: tmp_path / "home")
    sha256 = sha256_of(wheel)
    expected = {"framework_wheel": wheel.name, "framework_sha256": sha256}
    assert builds.wheel_params(str(wheel), None) == expected
    assert (tmp_path / "home" / "wheels" / sha256 / wheel.name).is_file()
    with pytest.raises(ConfigError, match="has another hash"):
        builds.wheel_params(str(wheel), NONE)

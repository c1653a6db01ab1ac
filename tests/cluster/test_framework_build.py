"""A framework build under test, in an environment of its own on real nodes."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.support.certify import MODE, PARAMS, TIPCFLOW, Outcome, Site
from tests.support.framework.wheels import make_wheel, sha256_of

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import Status

pytestmark = pytest.mark.cluster


@pytest.fixture
def site(nodes: LocalNodes, tmp_path: Path) -> Site:
    made = Site(tmp_path, nodes)
    for node in yaml.safe_load(made.cluster_file.read_text())["nodes"]:
        made.configure_node(node["name"], cache=str(tmp_path / f"cache-{node['name']}"))
    text = (made.suite / "train.py").read_text()
    place = text.index("import ")
    check = "import toyframe\nprint('framework', toyframe.__version__, toyframe.word, toyframe.__file__)\n"
    (made.suite / "train.py").write_text(text[:place] + check + text[place:])
    return made


def logs(site: Site, outcome: Outcome) -> str:
    found = [path for path in (site.home / "runs" / outcome.run.id).rglob("*") if path.is_file()]
    return "\n".join(path.read_text(errors="replace") for path in found if "log" in path.name)


def test_wheel_is_tested_without_changes_to_the_nodes(site: Site, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "built", text="first")
    first = site.run("--framework-wheel", str(wheel), "--sha256", sha256_of(wheel))
    assert first.code == 0, first.output
    output = logs(site, first)
    assert f"framework 1.0 first {tmp_path}/cache-a/builds/" in output
    assert f"framework 1.0 first {tmp_path}/cache-b/builds/" in output
    assert "installing toyframe 1.0 into" in output
    assert first.run.framework == f"toyframe 1.0 (wheel {sha256_of(wheel)[:12]})"
    with site.store() as store:
        assert {fact.framework_version for fact in store.nodes.facts(first.run.id)} == {
            f"1.0 (wheel {sha256_of(wheel)[:12]})"
        }
    with pytest.raises(ImportError):
        __import__("toyframe")  # the nodes' interpreter is that of this test

    again = site.run("--framework-wheel", str(wheel), "--sha256", sha256_of(wheel))
    assert again.code == 0, again.output
    assert "toyframe 1.0: in the cache" in logs(site, again)

    # Another build of the same version.
    other = make_wheel(tmp_path / "rebuilt", text="second")
    second = site.run("--framework-wheel", str(other))
    assert second.code == 0, second.output
    assert "framework 1.0 second" in logs(site, second)
    assert second.run.framework != first.run.framework
    assert len(list((tmp_path / "cache-a" / "builds").glob("*/complete"))) == 2
    assert site.left_behind() == []

    # A run without a build has the framework of the nodes.
    without = site.run()
    assert without.run.status is Status.FAILED
    assert "No module named 'toyframe'" in without.output


def test_a_wheel_for_another_python_starts_nothing(site: Site, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, python="cp27")
    outcome = site.run("--framework-wheel", str(wheel))
    assert outcome.run.status is Status.INFRA_FAILURE
    assert "is for cp27-none-any, node a has Python 3" in outcome.run.reason
    assert not list(tmp_path.glob("cache-*/builds/*"))


@pytest.mark.full
def test_a_release_comes_from_the_index_of_the_nodes(site: Site, tmp_path: Path) -> None:
    make_wheel(tmp_path / "index", version="2.1", text="release")
    for node in ("a", "b"):
        site.configure_node(node, env={"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "index")})
    outcome = site.run("--framework", "toyframe==2.1")
    assert outcome.code == 0, outcome.output
    assert f"framework 2.1 release {tmp_path}/cache-a/builds/" in logs(site, outcome)
    assert outcome.run.framework == "toyframe 2.1"
    missing = site.run("--framework", "toyframe==7.7")
    assert missing.code == 5, missing.output
    assert "pip cannot install toyframe 7.7" in missing.run.reason


@pytest.mark.full
@pytest.mark.timeout(600)
def test_the_wheel_that_made_a_chain_slower_is_found(site: Site, tmp_path: Path) -> None:
    train = site.suite / "train.py"
    cost = "avg_batch_cost: {args.step_time:.5f} sec"
    slower = "avg_batch_cost: {args.step_time * (1.2 if toyframe.word == 'slow' else 1.0):.5f} sec"
    assert cost in train.read_text()
    train.write_text(train.read_text().replace(cost, slower, 1))
    lines = ["# oldest first"]
    for number in range(6):
        word = "slow" if number >= 4 else "fast"
        wheel = make_wheel(tmp_path / f"built-{number}", version=f"1.{number}", text=word)
        lines.append(f"{wheel} --hash=sha256:{sha256_of(wheel)}")
    lines.insert(4, "toyframe==7.7")  # the nodes have no index
    for node in ("a", "b"):
        site.configure_node(node, env={"PIP_NO_INDEX": "1"})
    (tmp_path / "builds.txt").write_text("\n".join(lines))
    where = ["--suite", "toy", "--mode", MODE, "--cluster", "local"]
    command = [str(TIPCFLOW), "bisect", PARAMS, "batch_cost", "--builds", str(tmp_path / "builds.txt"), *where]
    done = subprocess.run(
        [*command, "--json"], env=site.env, capture_output=True, text=True, timeout=550, check=False
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    found = result["candidates"][0]["builds"]
    assert found[-1]["id"].startswith("1.4 (wheel ")
    assert len(found) == 1 or found[0]["id"] == "7.7", "an unmeasurable build before it may be the cause as well"
    assert all(skipped["build"] == "7.7" for skipped in result["skipped"])
    again = subprocess.run(command, env=site.env, capture_output=True, text=True, timeout=550, check=False)
    assert "run 1:" not in again.stdout.replace("run 10:", ""), "nothing is measured twice"
    assert site.left_behind() == []

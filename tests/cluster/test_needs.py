"""A suite file's needs on real nodes: one run with an own environment, data, variables and cached downloads."""

import hashlib
import shutil
import tarfile
from pathlib import Path

import pytest
import yaml
from tests.support.certify import PARAMS, Site

from devcluster.local_nodes.nodes import LocalNodes

pytestmark = pytest.mark.cluster

PREPARE = """#!/bin/sh
set -eu
python - <<'PY'
import os, sysconfig
open(os.path.join(sysconfig.get_paths()["purelib"], "made_by_prepare.py"), "w").write("answer = 42")
PY
cp deploy/helper.txt helper_of_suite.py
cd dataset
python -c 'import made_by_prepare, helper_of_suite; print("answer", made_by_prepare.answer, helper_of_suite.word)'
cd ..
echo "flag $TOY_FLAG, place $TOY_PLACE, data $(cat dataset/val.txt)"
wget -nc -P dataset https://data.example/weights.bin --no-check-certificate
mkdir -p images
for i in 0 1 2; do echo "$i" > "images/$i.png"; done
"""


@pytest.fixture
def site(nodes: LocalNodes, tmp_path: Path) -> Site:
    made = Site(tmp_path, nodes)
    (made.suite / "test_tipc" / "prepare.sh").write_text(PREPARE)
    (made.suite / "deploy").mkdir(exist_ok=True)
    (made.suite / "deploy" / "helper.txt").write_text("word = 'imported'")
    return made


def test_needed_data_is_linked_for_a_run_and_removed_afterwards(site: Site, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    (shared / "data.example").mkdir(parents=True)
    (shared / "val.txt").write_text("one image")
    (shared / "data.example" / "weights.bin").write_text("weights")
    with tarfile.open(shared / "data.tar", "w") as tar:
        tar.add(shared / "val.txt", arcname="val.txt")
    sha256 = hashlib.sha256((shared / "data.tar").read_bytes()).hexdigest()
    for node in yaml.safe_load(site.cluster_file.read_text())["nodes"]:
        site.configure_node(
            node["name"], cache=str(tmp_path / f"cache-{node['name']}"), mirrors={"https://": str(shared)}
        )
    settings = {
        "environment": "run",
        "downloads": "cached",
        "env": {"TOY_FLAG": 7, "TOY_PLACE": "{root}/dataset"},
        "pythonpath": ["."],
        "data": [{"to": "dataset", "path": str(shared / "data.tar"), "sha256": sha256}],
    }
    site.configure_suite(**settings)
    outcome = site.run()
    assert outcome.code == 0, outcome.output
    logs = {path: path.read_text() for path in (site.home / "runs" / outcome.run.id).rglob("main.log")}
    prepared = [text for path, text in logs.items() if "prepare" in str(path)]
    assert len(prepared) == 2
    for text in prepared:
        assert "answer 42 imported" in text
        assert f"runs/{outcome.run.id}/src/dataset, data one image" in text
        for words in ("flag 7", "from the mirror", "weights.bin’ saved [7]"):
            assert words in text
    with pytest.raises(ImportError):
        __import__("made_by_prepare")  # the nodes' interpreter is that of this test
    assert site.left_behind() == []

    (shared / "data.example" / "weights.bin").unlink()
    site.configure_suite(**{**settings, "data": [{**settings["data"][0], "sha256": "0" * 64}]})  # type: ignore[index,dict-item]
    outcome = site.run()
    assert outcome.code == 5, outcome.output
    assert "its sha256 is" in outcome.output
    assert outcome.run.status.value == "infra_failure"


NO_NETWORK = """#!/bin/sh
echo "wget: unable to resolve host address ‘data.example’" >&2
python -c 'print("tar: Error is not recoverable: exiting now")'
mkdir -p images
for i in 0 1 2; do echo "$i" > "images/$i.png"; done
"""


def test_failed_download_is_the_root_cause_only_if_a_file_is_missing(site: Site) -> None:
    (site.suite / "test_tipc" / "prepare.sh").write_text(NO_NETWORK)
    outcome = site.run()
    assert outcome.code == 0, outcome.output
    assert "exit code 0, but its log on node a reports: wget: unable to resolve host" in outcome.output
    text = (site.suite / "train.py").read_text()
    check = "import os; assert os.path.exists('d/train.txt'), 'path d/train.txt does not exist.'\n"
    place = text.index("import ")
    (site.suite / "train.py").write_text(text[:place] + check + text[place:])
    outcome = site.run()
    assert outcome.code == 5, outcome.output
    assert "a download failed in prepare on node" in outcome.output
    assert "the cause is in prepare, which has ended" in outcome.output


def test_scripts_use_files_outside_of_the_suites_root(site: Site) -> None:
    """The suite is the folder `tests` of a repository, and its training is in a package next to it."""
    repository = site.suite.with_name("repository")
    repository.mkdir()
    site.suite.rename(repository / "tests")
    package = repository / "package"
    package.mkdir()
    (repository / "tests" / "train.py").rename(package / "train.py")
    shutil.copytree(repository / "tests" / "paddle", package / "paddle")
    params = repository / "tests" / PARAMS
    params.write_text(params.read_text().replace("train.py", "../package/train.py"))
    (repository / "tests" / "test_tipc" / "prepare.sh").write_text(
        "mkdir -p images; for i in 0 1 2; do echo $i > images/$i.png; done; ls ../package\n"
    )
    site.configure_suite(folder=str(repository), subfolder="tests", whole_repository=True)
    outcome = site.run()
    assert outcome.code == 0, outcome.output
    assert outcome.run.status.value == "pass"
    assert site.left_behind() == []

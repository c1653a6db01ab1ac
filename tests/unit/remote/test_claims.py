"""Claims as a node's own interpreter keeps them."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tipcflow.domain import Node
from tipcflow.remote.claims import claim, unclaim


@pytest.fixture
def node(tmp_path: Path) -> Node:
    folder = tmp_path / "odd $(touch x) 'name"
    return Node(name="a", address="127.0.0.1", python=sys.executable, workspace=str(folder))


def requested(command: str) -> list[str]:
    """The runs whose claims conflict."""
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    return [one["run"] for one in json.loads(done.stdout)["others"]]


def take(node: Node, run: str, *slots: int, seconds: float = 600, void: tuple[str, ...] = ()) -> list[str]:
    return requested(claim(node, run, slots=slots, seconds=seconds, owner="it's me", void=void))


def test_slot_is_claimed_by_one_run_until_released(node: Node) -> None:
    assert take(node, "one", 0, 1) == []
    assert take(node, "one", 0, 1) == [], "again"
    assert take(node, "two", 1, 2) == ["one"]
    assert take(node, "three", 2) == [], "two got nothing"
    assert requested(unclaim(node, "one")) == ["three"]
    assert take(node, "two", 1) == []
    assert requested(unclaim(node, "unknown")) == ["three", "two"]


def test_expired_void_and_broken_claims_do_not_count(node: Node) -> None:
    take(node, "late", 0, seconds=0.001)
    take(node, "ours", 1)
    folder = Path(node.workspace) / "claims"
    (folder / "broken.json").write_text("{")
    assert take(node, "two", 0, 1) == ["ours"]
    assert take(node, "two", 0, 1, void=("ours",)) == []
    assert sorted(path.name for path in folder.glob("*.json")) == ["two.json"]


def test_a_workspace_that_cannot_be_written_has_no_claims_and_takes_none(node: Node) -> None:
    Path(node.workspace).write_text("a file, where the folder should be")
    assert requested(unclaim(node, "one")) == []
    done = subprocess.run(
        claim(node, "one", slots=[0], seconds=5, owner=""),
        shell=True,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode != 0


def test_concurrent_claims_have_a_single_winner(node: Node) -> None:
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda number: take(node, f"run-{number}", 0), range(6)))
    assert sum(not others for others in answers) == 1
    winner = f"run-{next(n for n, others in enumerate(answers) if not others)}"
    assert all(others in ([], [winner]) for others in answers)
    assert not list(Path(node.workspace).parent.glob("x"))


def test_the_largest_fence_of_the_slots_is_reported(node: Node) -> None:
    folder = Path(node.workspace) / "slots"
    folder.mkdir(parents=True)
    for number, fence in ((0, 7), (1, 1_795_000_000_000), (2, 9_000_000_000_000), (3, 2**60)):
        (folder / f"{number}.lock").write_text(json.dumps({"fence": fence, "job": ""}).ljust(4096))
    (folder / "4.lock").write_text("{")

    def fence(*slots: int) -> int:
        command = claim(node, "one", slots=slots, seconds=60, owner="")
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=True, timeout=60)
        return int(json.loads(done.stdout)["fence"])

    assert fence(0, 1) == 1_795_000_000_000
    assert fence(0) == 7
    assert fence(3, 4, 5) == 0, "what no controller has written counts for nothing"

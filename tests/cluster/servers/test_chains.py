"""The shipped suite for parameter servers on two nodes, by `tipcflow run`; and with processes that die."""

import subprocess

import pytest
from tests.support import certify
from tests.support.certify import wait_for

from tipcflow.domain import Run, Status, StepKind
from tipcflow.domain.run.failure import FailureClass
from tipcflow.domain.run_documents import FailuresDocument

SUITE = "parameter_server"
TWO_NODES = "test_tipc/configs/sparse_embedding/train_ps.txt"
ONE_NODE = "test_tipc/configs/sparse_embedding/train_ps_one_node.txt"


def training(site: certify.Site, run: Run) -> str:
    """The id of the training step."""
    with site.store() as store:
        return next(step.id for step in store.plans.get(run.id).steps if step.kind is StepKind.TRAIN)


def checks(site: certify.Site, run: Run) -> dict[str, Status]:
    with site.store() as store:
        return {result.check: result.status for result in store.checks.results(run.id)}


def values(site: certify.Site, run: Run, metric: str) -> dict[int, list[float]]:
    """Rank -> values in training."""
    with site.store() as store:
        found = sorted(store.measurements.of(run.id, metric=metric), key=lambda sample: sample.ordinal)
    ranks: dict[int, list[float]] = {}
    for sample in found:
        if sample.phase.value == "train":
            ranks.setdefault(sample.rank, []).append(sample.value)
    return ranks


@pytest.mark.parametrize(("params", "nodes"), [(TWO_NODES, 2), (ONE_NODE, 1)])
def test_training_passes_and_its_servers_are_ended(site: certify.Site, params: str, nodes: int) -> None:
    outcome = site.run(params=params, suite=SUITE)
    assert outcome.code == 0, outcome.output
    assert outcome.run.status is Status.PASS
    losses = values(site, outcome.run, "loss")
    assert {rank: len(found) for rank, found in losses.items()} == {0: 80, 1: 80}
    assert all(sum(found[-10:]) < sum(found[:10]) for found in losses.values()), losses
    assert sorted(values(site, outcome.run, "batch_cost")) == [0, 1]
    assert sorted(values(site, outcome.run, "ips")) == [0, 1]
    with site.store() as store:
        attempt = next(a for a in store.attempts.of(outcome.run.id) if a.step == training(site, outcome.run))
    assert [record.servers_finished for record in attempt.records] == [1] * nodes
    assert all("ended after all trainers" in record.message for record in attempt.records)
    expected = {"ran.world_size": Status.PASS, "loss.falling": Status.PASS}
    if nodes == 2:
        expected["ran.group"] = Status.PASS
    found = checks(site, outcome.run)
    assert {check: found[check] for check in expected} == expected
    assert site.left_behind() == []


# Kills the first process with a role: its own helpers started later.
KILL = """
for entry in $(ls -d /proc/[0-9]* | sort -V); do
    if tr '\\0' '\\n' < $entry/environ 2> /dev/null | grep -qx TRAINING_ROLE=%s; then
        kill -9 ${entry#/proc/} && echo killed
        exit
    fi
done
"""


@pytest.mark.parametrize(
    ("role", "node", "name"), [("PSERVER", "a", "parameter server 0"), ("TRAINER", "b", "trainer 1")]
)
def test_a_killed_process_ends_the_group_and_is_named(site: certify.Site, role: str, node: str, name: str) -> None:
    path = site.suite / TWO_NODES
    path.write_text(path.read_text().replace("--steps 40", "--steps 100000"))
    site.configure_policy(retries={"killed": 0})
    earlier = set(site.nodes.folder.rglob("workerlog.0"))
    process = subprocess.Popen(
        site.command(params=TWO_NODES, suite=SUITE),
        env=site.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip

    def trains() -> bool:
        logs = set(site.nodes.folder.rglob("workerlog.0")) - earlier
        return sum("batch_id: 20," in log.read_text(errors="replace") for log in logs) == 2

    wait_for(trains, what="both trainers", seconds=400, also=lambda: process.poll() is None)
    assert site.nodes.exec(node, ["bash", "-c", KILL % role]).stdout == "killed\n"
    stdout, stderr = process.communicate(timeout=300)
    run = site.latest()
    assert run.status is Status.INFRA_FAILURE, stdout + stderr
    with site.store() as store:
        failures = (store.documents.get(run.id, FailuresDocument) or FailuresDocument()).root
        reason = store.steps.statuses(run.id)[training(site, run)][1]
    failure = next(iter(failures.values()))
    assert (failure.failure_class, failure.node) == (FailureClass.KILLED, node), reason
    assert name in reason, reason
    assert site.left_behind() == []

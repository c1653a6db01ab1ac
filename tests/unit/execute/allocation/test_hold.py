"""The nodes that an allocation must have."""

from types import SimpleNamespace
from typing import cast

import pytest
from tests.support.stories import a_plan
from tests.unit.execute.allocation.conftest import Login

from tipcflow.domain import Cluster, Node, SlurmSource, SlurmStep
from tipcflow.execute.allocation import hold
from tipcflow.remote.slurm.output import SlurmJob, SlurmNode
from tipcflow.transport.connect import connect

TEMPLATE = Node(name="slurm-1", address="slurm-1", python="/p", workspace="/w", slurm=SlurmStep(local=True))
SOURCE = SlurmSource(local=True, time_limit_minutes=30, workspace="/w")
CLUSTER = Cluster(name="hpc", kind="slurm", slurm=SOURCE, nodes=(TEMPLATE,))
JOB = SlurmJob("7", "RUNNING", "None", 1.0, 2.0, "n[3-4]", "tipc-first-1")
ALLOCATED = hold.with_nodes(CLUSTER, JOB, [SlurmNode(name, "127.0.0.3", 6818, "") for name in ("n3", "n4")])


@pytest.mark.parametrize(
    ("cluster", "nodes_of", "expected"),
    [(ALLOCATED, "first", ("n3", "n4")), (CLUSTER, "first", ()), (CLUSTER, "", ())],
    ids=["first run with nodes", "first run without an allocation", "any nodes"],
)
def test_runs_of_a_comparison_request_the_nodes_of_its_first_run(
    cluster: Cluster, nodes_of: str, expected: tuple[str, ...]
) -> None:
    request = SimpleNamespace(nodes_of=nodes_of, evaluates=False)
    resolved = cast("hold.Resolved", SimpleNamespace(cluster=cluster, request=request))
    assert hold._needed(resolved, a_plan(nodes=("n3", "n4"))) == expected


@pytest.mark.process
@pytest.mark.parametrize(("name", "inherits"), [("tipc-first-1", True), ("tipc-other-1", False)])
def test_run_inherits_no_job_with_a_reused_id(login: Login, name: str, inherits: bool) -> None:
    login.add(f"7|RUNNING|None|2026-11-26T09:46:00|2026-11-26T10:16:34|n[3-4]|{name}")
    assert (hold._inherited(ALLOCATED, connect) is not None) == inherits

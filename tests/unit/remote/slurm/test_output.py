"""What Slurm 22.05 printed, recorded on a Slurm of four nodes."""

from pathlib import Path

import pytest

from tipcflow.domain import InfraError
from tipcflow.remote.slurm.output import (
    NEXT,
    active_jobs_in,
    is_over,
    is_too_old,
    jobs_in,
    key_of,
    may_pass,
    nodes_in,
    position_in,
    submitted_job,
    time_in,
    version_in,
)

RECORDED = Path(__file__).parents[3] / "golden" / "remote" / "slurm" / "recorded"


def test_jobs_are_listed_in_the_order_of_submission() -> None:
    jobs = jobs_in((RECORDED / "squeue.txt").read_text())
    assert [(job.id, job.state, job.reason, job.nodelist) for job in jobs] == [
        ("1", "RUNNING", "None", "n[1-3]"),
        ("2", "PENDING", "Resources", ""),
        ("3", "PENDING", "Priority", ""),
    ]
    assert [job.starts for job in jobs] == [1795686394.0, 1795688194.0, None]
    assert [job.is_active for job in jobs] == [True, True, True]
    assert [job.is_running for job in jobs] == [True, False, False]


@pytest.mark.parametrize(("name", "over"), [("tipc-x-1", False), ("", False), ("tipc-x-2", True)])
def test_job_of_another_name_has_a_reused_id(name: str, over: bool) -> None:
    line = (RECORDED / "squeue.txt").read_text().splitlines()[-1]
    assert is_over(0, line, "", name=name) == over


@pytest.mark.parametrize(
    ("state", "over"),
    [
        *((state, False) for state in ("RUNNING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING", "STAGE_OUT")),
        ("STATE_OF_A_NEWER_VERSION", False),
        *((state, True) for state in ("COMPLETING", "NODE_FAIL", "TIMEOUT", "CANCELLED", "PENDING", "REQUEUED")),
    ],
)
def test_allocation_is_over_in_final_states_and_in_the_queue(state: str, over: bool) -> None:
    nodelist = "" if state in ("PENDING", "REQUEUED") else "n1"
    line = f"7|{state}|None|2026-11-26T09:46:34|2026-11-26T10:16:34|{nodelist}|tipc-x-1"
    assert is_over(0, line, "", name="tipc-x-1") == over
    [job] = jobs_in(line)
    assert (job.is_active, job.is_waiting) == (not over or not nodelist, not nodelist)
    assert active_jobs_in(line) == ([job] if job.is_active else [])


def test_lines_of_login_scripts_are_ignored() -> None:
    assert jobs_in("Welcome to hpc!\nslurm_load_jobs error: Invalid job id specified\n") == []


def test_nodes_have_addresses_and_ports() -> None:
    first, second = nodes_in((RECORDED / "nodes.txt").read_text())
    assert (first.name, first.address, first.port, first.state) == ("n1", "127.0.0.11", 17001, "ALLOCATED")
    assert (second.name, second.address, second.port, second.state) == ("n2", "", 17002, "DOWN*")


def test_texts_of_administrators_replace_no_field() -> None:
    line = (RECORDED / "nodes.txt").read_text().splitlines()[0]
    [node] = nodes_in(f"{line} Comment=see Port=none NodeAddr=192.0.2.9 State=DOWN Reason=a Port=7")
    assert (node.address, node.port, node.state) == ("127.0.0.11", 17001, "ALLOCATED")


def test_node_with_an_unreadable_port_is_named() -> None:
    with pytest.raises(InfraError, match="node n1: scontrol show node printed Port=none; expected a number"):
        nodes_in("NodeName=n1 NodeAddr=192.0.2.9 Port=none State=IDLE")


def test_ipv6_addresses_of_a_node_are_ignored() -> None:
    printed = [
        "NodeName=n1 NodeAddr=first Port=17001 State=IDLE",
        "NodeName=n2 NodeAddr=second Port=17002 State=IDLE",
        f"{NEXT} STREAM {NEXT}",
        "2001:db8::1     STREAM first",
        "192.0.2.11      STREAM ",
        f"{NEXT} STREAM {NEXT}",
        "2001:db8::2     STREAM second",
    ]
    assert [each.address for each in nodes_in("\n".join(printed))] == ["192.0.2.11", ""]


@pytest.mark.parametrize(
    ("text", "version", "too_old"),
    [
        ("slurm-wlm 22.05.8\n", "22.05.8", False),
        ("Welcome to hpc!\nslurm 21.08.8-2\n", "21.08.8-2", True),
        ("slurm 20.11.9\n", "20.11.9", True),
        ("slurm 22.05.0-0rc1\n", "22.05.0-0rc1", False),
        ("slurm 25.11.0\n", "25.11.0", False),
        ("scancel: fatal: Could not establish a configuration source\n", "", False),
    ],
)
def test_version_is_too_old_before_22_05(text: str, version: str, too_old: bool) -> None:
    assert version_in(text) == version
    assert is_too_old(version) == too_old


def test_submission_prints_the_job_and_perhaps_the_cluster() -> None:
    assert [submitted_job(text) for text in ("12\n", "12;hpc\n", "quota of /home: 90 %\n12\n", "", "error\n")] == [
        "12",
        "12",
        "12",
        "",
        "",
    ]


def test_position_counts_the_pending_jobs() -> None:
    assert position_in("8\n5\n9\n", "5") == (2, 3)
    assert position_in("8\n9\n", "5") == (0, 2)
    assert position_in("", "5") == (0, 0)


@pytest.mark.parametrize("text", ["N/A", "Unknown", "", "None"])
def test_unknown_times_are_none(text: str) -> None:
    assert time_in(text) is None


@pytest.mark.parametrize(
    ("message", "key"),
    [
        ("Invalid partition name specified", "partition"),
        ("Invalid account or account/partition combination specified", "account"),
        ("Invalid feature specification", "constraint"),
        ("Invalid qos specification", "qos"),
        ("Invalid generic resource (gres) specification", "gres"),
        ("Requested time limit is invalid (missing or exceeds some limit)", "time_limit_minutes"),
        ("Requested node configuration is not available", "nodes"),
        ("Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)", ""),
    ],
)
def test_refusals_name_the_key_of_the_cluster_file(message: str, key: str) -> None:
    assert key_of(message) == key
    assert not may_pass(message)


@pytest.mark.parametrize(
    "message",
    [
        "Socket timed out on send/recv operation",
        "Unable to contact slurm controller (connect failure)",
        "Resource temporarily unavailable",
        "AssocMaxSubmitJobLimit; Job violates accounting/QOS policy",
        "AssocGrpSubmitJobsLimit; QOSMaxSubmitJobPerUserLimit",
    ],
)
def test_absence_of_the_controller_may_pass(message: str) -> None:
    assert may_pass(message)
    assert key_of(message) == ""

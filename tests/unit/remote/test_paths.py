"""Names on a node: safe, and different for different ids."""

from hypothesis import given
from hypothesis import strategies as st

from tipcflow.domain import JobCommand, JobSpec, Node
from tipcflow.remote import paths
from tipcflow.remote.runner.files import log_name

NODE = Node(name="a", address="10.0.0.1", python="/p", workspace="/w")


def test_paths_are_readable_if_possible():
    step = "train/norm_train_gpus_0,1_autocast_amp_nodes_2"
    assert paths.job_dir(NODE, "r1", step, 2) == f"/w/jobs/r1/train%2F{step[6:]}/2"
    assert paths.safe_name("..") == "%2E."
    assert paths.safe_name("") == "%"
    assert paths.log_file("/w/j") == "/w/j/logs/main.log"


def test_job_file_is_in_the_jobs_folder():
    spec = JobSpec(
        run="r1", step="a/b", attempt=3, node="a", fence=1, workspace="/w", root="/w/x",
        commands=(JobCommand(text="true", cwd="."),),
    )  # fmt: skip
    assert paths.job_file(spec) == paths.job_dir(NODE, "r1", "a/b", 3) + "/job.json"


@given(st.text(max_size=300), st.text(max_size=300))
def test_names_are_safe_and_injective(one, other):
    a, b = paths.safe_name(one), paths.safe_name(other)
    assert (a == b) == (one == other)
    assert 0 < len(a.encode()) <= 255
    assert "/" not in a
    assert not a.startswith(".")
    assert (log_name(one) == log_name(other)) == (one == other)


def test_a_leg_called_main_is_not_the_steps_own_log():
    assert log_name("main") != log_name("")


@given(st.text(min_size=201, max_size=400), st.text(min_size=201, max_size=400))
def test_long_names_stay_apart(one, other):
    assert (paths.safe_name(one) == paths.safe_name(other)) == (one == other)

"""Ids of runs and of chains' DAGs; durations of runs and attempts."""

import re
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given
from hypothesis import strategies as st
from tests.support.stories import T0, a_run

from tipcflow.domain import Attempt, dag_id_of, new_run_id, run_id_of, short_run_id_of
from tipcflow.domain.run.run import RUN_ID

AT = datetime(2026, 11, 21, 9, 30, 5, tzinfo=UTC)


def test_a_run_id_contains_the_time_and_the_chain() -> None:
    assert re.fullmatch(r"20261121t093005-mobilenet_v3-[0-9a-f]{10}", new_run_id("suite/MobileNet_V3", now=AT))


def test_runs_that_start_in_the_same_second_have_different_ids() -> None:
    assert len({new_run_id("toy", now=AT) for _ in range(1000)}) == 1000


def test_a_dag_run_has_one_run_id_for_all_tasks() -> None:
    here = AT.astimezone(timezone(timedelta(hours=8)))
    one = run_id_of("s.Mobile-Net.train", "manual__x", AT)
    assert one == run_id_of("s.Mobile-Net.train", "manual__x", here)
    assert re.fullmatch(r"20261121t093005-mobile_net-[a-z2-7]{16}", one)
    assert one != run_id_of("s.Mobile-Net.train", "manual__y", AT)
    assert one != run_id_of("s.Mobile-Net.other", "manual__x", AT)


def test_dag_runs_with_equal_short_hashes_have_different_ids() -> None:
    """The second name was found in 24 s."""
    at = datetime(2026, 12, 6, tzinfo=UTC)
    dag = "sample.mobilenet_v3_small.train_infer_python"
    runs = ("weekly__scheduled__2026-12-06T00:00:00+00:00", "ci__0dk2lG")
    assert len({short_run_id_of(dag, run, at) for run in runs}) == 1
    assert len({run_id_of(dag, run, at) for run in runs}) == 2


@given(st.text(min_size=1, max_size=300), st.text(min_size=1))
def test_every_dag_run_gets_an_id_that_is_safe_everywhere(dag: str, dag_run: str) -> None:
    assert RUN_ID.match(run_id_of(dag, dag_run, AT))


@given(st.lists(st.text(min_size=1, max_size=150), min_size=3, max_size=3))
def test_every_chain_has_a_dag_id_that_airflow_takes(parts: list[str]) -> None:
    dag_id = dag_id_of("/".join(parts))
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,250}", dag_id)


def test_a_dag_is_named_after_its_chain() -> None:
    assert dag_id_of("clas/ResNet50/train_infer_python") == "clas.ResNet50.train_infer_python"
    assert dag_id_of("clas/a b/c.d") == "clas.a_b.c_d"


def test_duration_is_known_after_the_end() -> None:
    attempt = Attempt(run="r", step="v/train", attempt=1, nodes=("a",), started_at=T0)
    assert (a_run().duration_s, a_run().elapsed_s(T0 + 5)) == (None, 5)
    assert attempt.duration_s is None
    ended = a_run(ended_at=T0 + 20)
    assert (ended.duration_s, ended.elapsed_s(T0 + 90)) == (20, 20)
    assert attempt.model_copy(update={"ended_at": T0 + 3}).duration_s == 3

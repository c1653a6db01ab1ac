"""The tasks and triggers of the DAG `weekly` with a real database; only Airflow's responses are fake."""

import asyncio
import importlib
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import TimeRestriction
from airflow.triggers.base import BaseTrigger, TriggerEvent
from tests.support.stories import TRAIN, a_plan, a_run, copy_example

from tipcflow.domain import CheckResult, ConfigError, Status, dag_id_of, run_id_of
from tipcflow.store import Store
from tipcflow_operators.airflow import dag_runs
from tipcflow_operators.triggers import dag_run as dag_run_trigger
from tipcflow_operators.weekly import turn as weekly_turn
from tipcflow_operators.weekly.certify import CertifyOperator
from tipcflow_operators.weekly.dag import weekly_dag
from tipcflow_operators.weekly.select import SelectOperator
from tipcflow_operators.weekly.summary import SummaryOperator

ROOT = Path(__file__).parents[3]
CHAINS = ["clas/a/train", "clas/b/train", "ocr/c/train"]
PARENT = "scheduled__2026-11-21T20:00:00+00:00"
AFTER = datetime(2026, 11, 21, 20, tzinfo=UTC)
MODE = "whole_train_whole_infer"


class Week:
    """One weekly DAG run, with the fake responses of Airflow and the metrics database."""

    def __init__(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = home
        self.states: dict[tuple[str, str], str] = {}
        self.tasks: dict[str, str | None] = {}
        self.started: list[tuple[str, str, dict[str, Any]]] = []
        self.params = {"chains": ["*"], "mode": MODE, "cluster": "local", "seed": 7, "policy": "weekly"}
        self.order = list(CHAINS)
        self.pushed: dict[str, Any] = {}
        monkeypatch.setenv("TIPCFLOW_HOME", str(home))
        monkeypatch.setenv("TIPCFLOW_CONFIG_DIR", str(home / "configs"))
        monkeypatch.setenv("TIPCFLOW_DATABASE_URL", "")
        monkeypatch.setattr(dag_runs, "state_of", lambda dag_id, run_id: self.states.get((dag_id, run_id)))
        monkeypatch.setattr(dag_runs, "task_states", lambda *_: self.tasks)
        monkeypatch.setattr(dag_runs, "start", self._start)
        shutil.copytree(ROOT / "configs" / "policies", home / "configs" / "policies")
        (home / "configs" / "clusters").mkdir()
        copy_example(home / "configs/clusters/local.yaml")
        (home / "configs" / "suites").mkdir()
        for suite in ("clas", "ocr"):
            content = f"name: {suite}\nfolder: {home}\ndialects: [PaddleClas]\n"
            (home / "configs" / "suites" / f"{suite}.yaml").write_text(content)
        for name in CHAINS:
            self.add_chain(name, "")

    def _push(self, key: str, value: Any) -> None:
        self.pushed[key] = value

    def add_chain(self, name: str, text: str) -> None:
        path = self.home / "configs" / "chains" / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def _start(self, dag_id: str, run_id: str, *, run_after: datetime, conf: dict[str, Any], note: str) -> None:
        assert run_after == AFTER
        assert PARENT in note
        self.started.append((dag_id, run_id, conf))
        self.states[dag_id, run_id] = "queued"

    def store(self) -> Store:
        return Store.open(f"sqlite:///{self.home / 'tipcflow.db'}")

    def context(self, index: int = 0, **conf: Any) -> Any:
        dag_run = SimpleNamespace(dag_id="weekly", run_id=PARENT, run_after=AFTER, conf=conf)
        ti = SimpleNamespace(map_index=index, xcom_pull=self._pull, xcom_push=self._push)
        return {"dag_run": dag_run, "params": self.params, "ti": ti}

    def _pull(self, task_ids: str, key: str = "") -> Any:
        assert task_ids == "select"
        return self.pushed.get(key) if key else self.order

    def ended(self, chain: str, status: Status | None, reason: str = "", suffix: str = "", **fields: Any) -> str:
        """A chain's run of this week, as it ended."""
        dag_id, dag_run_id = dag_id_of(chain), f"weekly__{PARENT}{suffix}"
        run_id = run_id_of(dag_id, dag_run_id, AFTER)
        run = a_run(run_id, chain=chain, mode=MODE, **fields)
        with self.store() as store:
            store.runs.create(run)
            if status is not None:
                store.runs.finish(run_id, status, reason, run.created_at + 60)
        self.states[dag_id, dag_run_id] = "success" if status is Status.PASS else "failed"
        return run_id

    def certify(self, index: int = 0) -> str | None:
        return CertifyOperator(task_id="certify", chain=self.order[index])._go_on(
            self.context(index), may_wait=True
        )

    def deferred(self, index: int = 0) -> TaskDeferred:
        with pytest.raises(TaskDeferred) as caught:
            self.certify(index)
        return caught.value


@pytest.fixture
def week(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Week:
    return Week(tmp_path, monkeypatch)


def test_dag_is_serializable_and_first_runs_on_the_next_saturday(
    week: Week, monkeypatch: pytest.MonkeyPatch
) -> None:
    dag = weekly_dag()
    assert dag.task_ids == ["select", "certify", "summary"]
    assert dag.get_task("summary").trigger_rule == "all_done"
    assert (dag.is_paused_upon_creation, dag.max_active_runs, dag.catchup) == (True, 1, False)
    assert dict(dag.params)["mode"] == MODE
    assert dict(dag.params)["policy"] == "weekly"
    assert "diagnose" not in dag.params
    kept = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    first = kept.timetable.next_dagrun_info(
        last_automated_data_interval=None, restriction=TimeRestriction(None, None, catchup=False)
    )
    assert first.run_after > datetime.now(UTC)
    assert (first.run_after.isoweekday(), first.run_after.hour) == (6, 20)
    monkeypatch.setenv("TIPCFLOW_WEEKLY_CRON", "never")
    with pytest.raises(ConfigError, match="TIPCFLOW_WEEKLY_CRON"):
        weekly_dag()


def test_select_puts_the_longest_first(week: Week) -> None:
    with week.store() as store:
        for chain, seconds in (("clas/a/train", 60.0), ("clas/b/train", 600.0)):
            run = a_run(f"before-{chain[5]}", chain=chain, mode=MODE)
            store.runs.create(run, a_plan())
            store.attempts.open(run.id, TRAIN, ["node-a"], run.created_at)
            store.runs.finish(run.id, Status.PASS, "", run.created_at + seconds)
    select = SelectOperator(task_id="select")
    assert select._select(dict(week.params))[0] == ["ocr/c/train", "clas/b/train", "clas/a/train"]
    assert select._select({**week.params, "chains": ["clas/*"]}) == (["clas/b/train", "clas/a/train"], {})


def test_chains_without_the_mode_are_omitted_and_reported(week: Week) -> None:
    for name in ("clas/a/serving", "ocr/d/serving"):
        week.add_chain(name, "===========================serving_params===========================\n")
    select = SelectOperator(task_id="select")
    assert sorted(select.execute(week.context())) == sorted(CHAINS)
    why = f"this kind of file does not support mode {MODE}"
    assert week.pushed == {"not_run": dict.fromkeys(("clas/a/serving", "ocr/d/serving"), why)}
    for chain in CHAINS:
        week.ended(chain, Status.PASS)
    assert SummaryOperator(task_id="summary").execute(week.context()) == "3 chains: 3 pass; 2 not_run"
    text = (week.home / "weekly" / f"{PARENT}.md").read_text(encoding="utf-8")
    assert f"2 not_run: {why}: clas/a/serving, ocr/d/serving\n" in text
    with pytest.raises(
        AirflowFailException, match=r"^config_error: .*no selected chain supports this mode; found"
    ):
        select.execute(week.context(chains=["*/serving"]))


def test_chains_whose_framework_the_cluster_does_not_have_are_not_run(
    week: Week, capsys: pytest.CaptureFixture[str]
) -> None:
    content = f"name: torch\nfolder: {week.home}\ndialects: [PaddleClas]\nframework: torch\n"
    (week.home / "configs" / "suites" / "torch.yaml").write_text(content)
    chains = ["torch/mnist/train", "torch/toy/train"]
    for name in chains:
        week.add_chain(name, "")
    select = SelectOperator(task_id="select")
    assert sorted(select.execute(week.context())) == sorted(CHAINS)
    why = "cluster local has no torch"
    assert week.pushed == {"not_run": dict.fromkeys(chains, why)}
    assert f"torch/toy/train: not_run: {why}" in capsys.readouterr().out
    for chain in CHAINS:
        week.ended(chain, Status.PASS)
    assert SummaryOperator(task_id="summary").execute(week.context()) == "3 chains: 3 pass; 2 not_run"
    for suffix in ("md", "html"):
        text = (week.home / "weekly" / f"{PARENT}.{suffix}").read_text(encoding="utf-8")
        assert text.count(why) == (3 if suffix == "md" else 2)
    # A request that names such chains is refused before anything starts, even among others.
    for named in (["torch/*"], ["clas/*", "torch/mnist/train"]):
        with pytest.raises(AirflowFailException, match=f"^config_error: .*no chain of it can run: {why}.*torch/"):
            select.execute(week.context(chains=named))
    assert week.started == []
    # A run that installs the framework can use the cluster.
    assert len(select.execute(week.context(framework="torch==2.13.0"))) == 5


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"chains": ["clas/*", "clsa/a*"]}, "chains: matches no chain; found 'clsa/a[*]'.*similar: clas/a/train"),
        ({"mode": "whole"}, "mode: unknown mode; found 'whole'"),
        ({"cluster": "locla"}, "unknown cluster; found 'locla'; expected one of local"),
        ({"policy": "monthly"}, "unknown policy; found 'monthly'"),
        ({"diagnose": True}, "diagnose: unknown param"),
        ({"sede": 1}, "sede: unknown param.*did you mean seed"),
    ],
)
def test_wrong_param_is_reported_before_a_run_starts(week: Week, wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(AirflowFailException, match=f"(?s)^config_error: .*{words}"):
        SelectOperator(task_id="select").execute(week.context(**wrong))
    assert week.started == []


def test_more_chains_than_airflow_maps_are_refused_with_the_setting(
    week: Week, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__CORE__MAX_MAP_LENGTH", "1")
    with pytest.raises(AirflowFailException, match=r"AIRFLOW__CORE__MAX_MAP_LENGTH: \d chains are selected"):
        SelectOperator(task_id="select").execute(week.context())
    assert week.started == []


def test_a_chain_is_started_awaited_and_its_verdict_reported(week: Week) -> None:
    waits = week.deferred()
    conf = {"mode": MODE, "cluster": "local", "seed": 7, "policy": "weekly"}
    assert week.started == [("clas.a.train", f"weekly__{PARENT}", conf)]
    assert (waits.method_name, waits.trigger.run_id) == ("resume", f"weekly__{PARENT}")
    # Tried again, for example after its worker died: nothing is started twice.
    assert week.deferred().trigger.run_id == f"weekly__{PARENT}"
    assert len(week.started) == 1

    resume = CertifyOperator(task_id="certify", chain=CHAINS[0]).resume
    event = {"run_id": f"weekly__{PARENT}", "state": "failed"}
    with pytest.raises(
        AirflowFailException,
        match=r"infra_failure: DAG run weekly__.* ended .Airflow: failed. without a tipcflow status",
    ):
        resume(week.context(), event)
    with pytest.raises(AirflowFailException, match=r"infra_failure: DAG run weekly__.* did not end within 6 days"):
        resume(week.context(), {**event, "state": "late"})
    week.ended(CHAINS[0], Status.REGRESSION, "batch_cost is 30 % slower")
    with pytest.raises(AirflowFailException, match=r"^regression: batch_cost is 30 % slower$"):
        resume(week.context(), event)


@pytest.mark.parametrize("status", [Status.PASS, Status.IMPROVEMENT])
def test_a_passed_verdict_remains_when_the_week_is_cleared(week: Week, status: Status) -> None:
    week.ended(CHAINS[0], status)
    assert week.certify() == status.value
    assert week.started == []


@pytest.mark.parametrize("status", [Status.REGRESSION, Status.FAILED, Status.CONFIG_ERROR])
def test_chain_that_already_failed_fails_without_a_new_run(week: Week, status: Status) -> None:
    week.ended(CHAINS[0], status, "for a reason")
    with pytest.raises(AirflowFailException, match=f"^{status.value}: for a reason$"):
        week.certify()
    assert week.started == []


@pytest.mark.parametrize("status", [Status.CANCELLED, Status.INFRA_FAILURE, None])
def test_chain_without_a_verdict_is_run_again(week: Week, status: Status | None) -> None:
    week.ended(CHAINS[0], status)
    week.deferred()
    assert [run_id for _, run_id, _ in week.started] == [f"weekly__{PARENT}~2"]


def test_number_of_concurrent_chains_is_limited(week: Week, monkeypatch: pytest.MonkeyPatch) -> None:
    assert week.deferred(2).method_name == "resume", "all three, by default"
    monkeypatch.setenv("TIPCFLOW_WEEKLY_AT_ONCE", "1")
    week.tasks = {"certify_0": "deferred", "certify_1": None, "certify_2": None}
    waits = week.deferred(1)
    assert (waits.method_name, len(week.started)) == ("take_turn", 1)
    week.tasks["certify_0"] = "failed"
    assert week.deferred(1).method_name == "resume"
    assert [dag_id for dag_id, _, _ in week.started] == ["ocr.c.train", "clas.b.train"]

    week.states.clear()
    certify = CertifyOperator(task_id="certify", chain=CHAINS[2])
    with pytest.raises(TaskDeferred):
        certify.take_turn(week.context(2), {"late": False})
    assert week.started[-1][0] == "ocr.c.train"
    with pytest.raises(
        AirflowFailException, match="infra_failure: the preceding chains are still running after 6 days"
    ):
        certify.take_turn(week.context(2), {"late": True})


def test_the_summary_is_red_when_a_chain_is_and_is_kept(week: Week, monkeypatch: pytest.MonkeyPatch) -> None:
    (bucket := week.home / "bucket").mkdir()
    monkeypatch.setenv("TIPCFLOW_STORE", f"file://{bucket}")

    def accuracy(value: float) -> CheckResult:
        values = {"value": value, "target": 71.0, "tolerance": 0.5, "unit": "%"}
        return CheckResult(
            check="accuracy.final", status=Status.PASS, reason="", step="e", metric="top1_acc", values=values
        )

    week.order = CHAINS[:2]
    week.ended(CHAINS[0], Status.INFRA_FAILURE, "node b was away")
    runs = [week.ended(CHAINS[0], Status.PASS, suffix="~2"), week.ended(CHAINS[1], Status.IMPROVEMENT)]
    with week.store() as store:
        last_week = a_run("last-week", chain=CHAINS[0], mode=MODE, created_at=1.0)
        store.runs.create(last_week)
        store.runs.finish(last_week.id, Status.PASS, "", 2.0)
        store.checks.replace(last_week.id, [accuracy(71.0)])
        store.checks.replace(runs[0], [accuracy(71.25)])
    summary = SummaryOperator(task_id="summary")
    assert summary.execute(week.context()) == "2 chains: 1 improvement, 1 pass"
    text = (week.home / "weekly" / f"{PARENT}.md").read_text(encoding="utf-8")
    assert "top1_acc 71.25 % (target 71 ± 0.5; previous 71, +0.25)" in text
    assert "node b was away" not in text
    assert all(run in text for run in runs)
    assert (bucket / "weekly" / f"{PARENT}.md").read_text(encoding="utf-8") == text

    week.order = CHAINS
    with pytest.raises(AirflowFailException, match=r"^3 chains: 1 not started, 1 improvement, 1 pass$"):
        summary.execute(week.context())
    week.order = []
    with pytest.raises(AirflowFailException, match="no chains were selected"):
        summary.execute(week.context())


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in (dag_run_trigger, weekly_turn):
        monkeypatch.setattr(module, "SETTLE_S", 0.0)
        monkeypatch.setattr(module, "POLL_S", 0.01)
    return


def fired(trigger: BaseTrigger) -> dict[str, Any]:
    """The trigger's event after a round trip through Airflow's database."""
    path, fields = trigger.serialize()
    module, _, name = path.rpartition(".")
    again = getattr(importlib.import_module(module), name)(**fields)

    async def first() -> TriggerEvent:
        return await asyncio.wait_for(anext(again.run()), 20)

    payload = asyncio.run(first()).payload
    assert isinstance(payload, dict)
    return payload


def answers(*several: Any) -> Callable[..., Any]:
    """A function that returns one result after the other, then the last one forever; errors are raised."""
    left = list(several)

    def answer(*_: Any) -> Any:
        one = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(one, Exception):
            raise one
        return one

    return answer


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("report", "state"),
    [
        (["queued", "running", RuntimeError("away"), "success"], "success"),
        (["running", "failed"], "failed"),
        (["running", None], None),
    ],
)
def test_trigger_waits_until_the_dag_run_ends_or_is_deleted(
    report: list[Any], state: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dag_runs, "state_of", answers(*report))
    trigger = dag_run_trigger.DagRunTrigger(dag_id="d", run_id="r", until=time.time() + 60)
    assert fired(trigger) == {"run_id": "r", "state": state}


@pytest.mark.usefixtures("quick")
def test_waits_for_dag_runs_have_a_deadline(week: Week, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dag_runs, "state_of", answers("running"))
    until = time.time() + 0.2
    late = fired(dag_run_trigger.DagRunTrigger(dag_id="d", run_id="r", until=until))
    assert late == {"run_id": "r", "state": "late"}
    week.tasks = {"certify_0": "deferred"}
    assert fired(turn(until=time.time() + 0.2)) == {"late": True}


@pytest.mark.usefixtures("quick")
def test_a_turn_comes_when_enough_have_ended(week: Week, monkeypatch: pytest.MonkeyPatch) -> None:
    waiting, done = {"certify_0": "deferred"}, {"certify_0": "failed"}
    monkeypatch.setattr(dag_runs, "task_states", answers(waiting, RuntimeError("away"), waiting, done))
    assert fired(turn()) == {"late": False}


def turn(until: float | None = None) -> weekly_turn.TurnTrigger:
    return weekly_turn.TurnTrigger(
        dag_id="weekly",
        run_id=PARENT,
        index=1,
        at_once=1,
        until=time.time() + 60 if until is None else until,
    )

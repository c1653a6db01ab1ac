"""A training that became slower: measured again, on real nodes, before it is a regression."""

import signal
import subprocess
from pathlib import Path

import pytest
from tests.support.certify import Site, wait_for
from tests.support.precedents import remember

from devcluster.local_nodes.nodes import LocalNodes
from tipcflow.domain import CheckResult, Run, Status
from tipcflow.execute.verdict import confirm

pytestmark = pytest.mark.cluster
WHOLE = "whole_train_whole_infer"


@pytest.fixture
def site(nodes: LocalNodes, tmp_path: Path) -> Site:
    return Site(tmp_path, nodes)


def test_slower_twice_is_a_regression(site: Site) -> None:
    first = site.run()
    assert first.code == 0, first.output
    with site.store() as store:
        remember(store, first.run, runs=5)
    site.edit_params("norm_train:train.py", "norm_train:train.py --step-time 0.05")
    slow = site.run()
    with site.store() as store:
        runs = {run.trigger: run for run in store.runs.newest(limit=2)}
        confirmed, child = runs["cli"], runs[confirm.TRIGGER]
        requested = confirm.confirm_request_of(store, confirmed.id)
        results = [one for one in store.checks.results(confirmed.id) if one.check == "speed.batch_cost"]
        steps = [step.id for step in store.plans.get(child.id).steps]
        assert not store.leases.all()
    assert slow.code == 1, slow.output
    assert confirmed.status is Status.REGRESSION
    assert requested
    assert requested.run == child.id
    assert "confirming" in slow.output
    (result,) = results
    assert result.status is Status.REGRESSION
    assert "confirm" in result.reason
    assert [step.rpartition("/")[2] for step in steps] == ["prepare", "train"], "only what was unconfirmed"
    assert child.nodes == tuple(reversed(confirmed.nodes)), "on the nodes in another order"
    assert site.left_behind() == []


@pytest.mark.full
@pytest.mark.parametrize("refuted", [False, True])
def test_three_confirm_runs_decide_about_a_slower_training(site: Site, tmp_path: Path, refuted: bool) -> None:
    """Also while another run waits for the slots: it starts after the last confirm run."""
    site.configure_policy(confirm_runs=3, metrics={"batch_cost": {}})
    first = site.run()
    assert first.code == 0, first.output
    with site.store() as store:
        remember(store, first.run, runs=6, noise=0.01)
    switch = tmp_path / "slow"
    switch.touch()
    site.edit_params("norm_train:train.py", f"norm_train:train.py --slow-while {switch}")
    rivals: list[subprocess.Popen[bytes]] = []

    def runs_of(trigger: str) -> list[Run]:
        with site.store() as store:
            return [run for run in reversed(store.runs.newest(limit=20)) if run.trigger == trigger]

    def rival(_: "subprocess.Popen[str]") -> None:
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        rivals.append(subprocess.Popen(site.command(trigger="ci"), env=site.env, **quiet))
        wait_for(lambda: len(runs_of(confirm.TRIGGER)) == (2 if refuted else 1), what="a confirm run")
        if refuted:
            switch.unlink()

    try:
        slow = site.run_and(lambda: site.training_runs_on("a"), rival)
    finally:
        for process in rivals:
            # Not SIGKILL: its job would keep the slots for the other case's runs, whose database does not know it.
            process.send_signal(signal.SIGINT)
            process.wait(60)
    run, children = runs_of("cli")[-1], runs_of(confirm.TRIGGER)
    with site.store() as store:
        (result,) = [one for one in store.checks.results(run.id) if one.check == "speed.batch_cost"]
        began = [min(one.started_at for one in store.attempts.of(child.id)) for child in children]
        later = [one.started_at for each in runs_of("ci") for one in store.attempts.of(each.id)]
    assert len(children) == 3, slow.output
    assert began == sorted(began)
    assert all(at > began[-1] for at in later)
    measured = "3 confirm runs measured 0.1 s, 0.01 s, 0.01 s" if refuted else "and 3 confirm runs measured 0.1 s"
    assert measured in result.reason
    expected = (0, Status.PASS, Status.PASS) if refuted else (1, Status.REGRESSION, Status.REGRESSION)
    assert (slow.code, run.status, result.status) == expected
    assert slow.output.count("confirming norm_train") == 3


def once_more(site: Site, tmp_path: Path, does: str) -> None:
    """Make the training slower, within twice the limit; what it does in the confirm run, after an export."""
    mark = tmp_path / "exported"
    export = site.suite / "tools" / "export_model.py"
    export.write_text(f"open({str(mark)!r}, 'w').close()\n{export.read_text()}")
    script = site.suite / "train.py"
    parsed = "args = parser.parse_args()\n"
    text = script.read_text()
    assert text.count(parsed) == 1
    script.write_text(text.replace(parsed, f"{parsed}if os.path.exists({str(mark)!r}):\n    {does}\n"))
    site.edit_params("norm_train:train.py", "norm_train:train.py --step-time 0.018")


def ended(site: Site) -> tuple[Run, Run, dict[str, CheckResult]]:
    """The run, its confirm run, and the results of its checks `speed.train` and of the confirm run."""
    with site.store() as store:
        runs = {run.trigger: run for run in store.runs.newest(limit=2)}
        results = [one for one in store.checks.results(runs["cli"].id) if one.gating]
        assert not store.leases.all()
        accepted = store.history.accepted(runs["cli"].chain, runs["cli"].mode, runs["cli"].environment)
    assert not {runs["cli"].id, runs[confirm.TRIGGER].id} & set(accepted)
    wanted = {one.check: one for one in results if one.check in ("speed.batch_cost", "confirm.run")}
    return runs["cli"], runs[confirm.TRIGGER], wanted


def test_a_run_whose_confirm_run_crashes_is_not_green(site: Site, tmp_path: Path) -> None:
    first = site.run()
    assert first.code == 0, first.output
    with site.store() as store:
        remember(store, first.run, runs=5, probes=False)
    once_more(site, tmp_path, "raise SystemExit(3)")
    slow = site.run()
    run, child, results = ended(site)
    assert (slow.code, run.status, child.status) == (1, Status.FAILED, Status.FAILED), slow.output
    found = results["confirm.run"]
    assert found.status is Status.FAILED
    assert found.reason.startswith(f"confirm run {child.id} of the same code failed: ")
    assert child.reason in found.reason
    assert results["speed.batch_cost"].status is Status.UNCONFIRMED
    assert found.reason[:100] in run.reason


@pytest.mark.full
def test_a_confirm_run_that_takes_too_long_leaves_the_run_unconfirmed(site: Site, tmp_path: Path) -> None:
    site.configure_policy(confirm_minutes=1)
    first = site.run()
    assert first.code == 0, first.output
    with site.store() as store:
        remember(store, first.run, runs=5, probes=False)
    once_more(site, tmp_path, "args.step_time = 20.0")
    # The confirm run takes its whole minute.
    slow = subprocess.run(site.command(), env=site.env, capture_output=True, text=True, timeout=300, check=False)
    run, child, results = ended(site)
    assert (slow.returncode, run.status) == (4, Status.UNCONFIRMED), slow.stdout + slow.stderr
    assert slow.stdout.splitlines()[-1] == "unconfirmed"
    doubt = results.pop("speed.batch_cost")
    assert doubt.status is Status.UNCONFIRMED
    assert f"the confirm run {child.id} did not finish before its deadline" in doubt.reason
    assert results == {}, "being late is not a finding"
    assert site.left_behind() == []


@pytest.mark.full
def test_a_run_that_has_no_time_left_is_confirmed_all_the_same(site: Site, tmp_path: Path) -> None:
    first = site.run()
    assert first.code == 0, first.output
    with site.store() as store:
        remember(store, first.run, runs=5, probes=False)
    once_more(site, tmp_path, "time.sleep(1)")
    # Less than a minute of it is left after the steps of this run.
    site.configure_suite(budget_minutes=1)
    slow = site.run()
    run, child, results = ended(site)
    assert (slow.code, run.status, child.status) == (1, Status.REGRESSION, Status.PASS), slow.output
    assert "the confirm run measured" in results["speed.batch_cost"].reason


@pytest.mark.full
def test_a_confirm_run_precedes_a_run_that_waits_for_the_slots(site: Site) -> None:
    """Who waits would have the slots as soon as the run gives them back, and the confirm run would be too late."""
    first = site.run()
    assert first.code == 0, first.output
    with site.store() as store:
        remember(store, first.run, runs=5)
    site.edit_params("norm_train:train.py", "norm_train:train.py --step-time 0.05")
    rivals: list[subprocess.Popen[bytes]] = []

    def rival(_: "subprocess.Popen[str]") -> None:
        # As urgent as a pull request, and there before the confirm run is.
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        rivals.append(subprocess.Popen(site.command(trigger="ci"), env=site.env, **quiet))
        wait_for(queued, what="the other run to wait for slots")

    def queued() -> bool:
        with site.store() as store:
            return bool(store.queue.places())

    try:
        slow = site.run_and(lambda: site.training_runs_on("a"), rival)
        for process in rivals:
            process.wait(180)
    finally:
        for process in rivals:
            process.kill()
    assert "confirming" in slow.output
    with site.store() as store:
        began = {
            run.trigger: min(one.started_at for one in store.attempts.of(run.id))
            for run in store.runs.newest(limit=10)
            if store.attempts.of(run.id)
        }
    assert began["cli"] < began[confirm.TRIGGER] < began["ci"]
    assert site.left_behind() == []


@pytest.mark.full
def test_lower_accuracy_is_confirmed_by_evaluating_the_trained_weights_again(site: Site) -> None:
    site.configure_policy(accuracy={"too_good": 3, "history": True})
    first = site.run(mode=WHOLE)
    assert first.code == 0, first.output
    with site.store() as store:
        remember(store, first.run, runs=5)
    script = site.suite / "train.py"
    text = script.read_text()
    assert "Acc@1 0.875" in text
    script.write_text(text.replace("Acc@1 0.875", "Acc@1 0.500"))
    worse = site.run(mode=WHOLE)
    with site.store() as store:
        runs = {run.trigger: run for run in store.runs.newest(limit=2)}
        confirmed, child = runs["cli"], runs[confirm.TRIGGER]
        (result,) = [
            one
            for one in store.checks.results(confirmed.id)
            if one.metric == "top1" and one.step.endswith("/eval")
        ]
        steps = store.plans.get(child.id).steps
        ended = store.steps.statuses(child.id)
        evaluated = store.plans.get(confirmed.id).step(steps[0].id)
    assert worse.code == 1, worse.output
    assert (confirmed.status, result.status) == (Status.REGRESSION, Status.REGRESSION)
    assert "the confirm run measured" in result.reason
    assert [step.id.rpartition("/")[2] for step in steps] == ["eval"], "nothing is trained again"
    assert [status for status, _ in ended.values()] == [Status.PASS]
    assert steps[0].nodes == evaluated.nodes, "where the weights are"
    assert site.left_behind() == []


@pytest.mark.full
def test_accuracy_is_judged_without_confirm_run_when_the_weights_are_deleted(site: Site) -> None:
    site.configure_policy(accuracy={"too_good": 3, "history": True})
    first = site.run(mode=WHOLE)
    assert first.code == 0, first.output
    with site.store() as store:
        remember(store, first.run, runs=5)
    script = site.suite / "train.py"
    # The evaluation takes the weights away.
    script.write_text(
        script.read_text().replace('print(" * Acc@1 0.875', 'os.remove(args.pretrained); print(" * Acc@1 0.500')
    )
    site.edit_params("norm_export:tools/export_model.py", "norm_export:null")
    worse = site.run(mode=WHOLE)
    with site.store() as store:
        runs = {run.trigger: run for run in store.runs.newest(limit=2)}
        child = runs[confirm.TRIGGER]
        (result,) = [
            one
            for one in store.checks.results(runs["cli"].id)
            if one.metric == "top1" and one.step.endswith("/eval")
        ]
    assert child.status is Status.INFRA_FAILURE
    assert "latest.pdparams* no longer exists" in child.reason
    assert result.status is Status.REGRESSION, worse.output
    assert "needs no confirm run" in result.reason
    assert child.reason in result.reason

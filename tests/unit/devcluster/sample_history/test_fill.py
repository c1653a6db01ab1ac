"""The generated history: marked, repeatable, alone in its database, and like real runs for the store."""

from pathlib import Path

import pytest
from tests.support.stories import T0, a_run, open_store

from devcluster.sample_history.chains import CHAINS
from devcluster.sample_history.fill import fill
from tipcflow.config.run_documents import PolicyDocument
from tipcflow.domain import ConfigError, Status
from tipcflow.domain.generated import GeneratedDocument
from tipcflow.execute.overview.pulls import load_pulls
from tipcflow.store import Store
from tipcflow.store.queries.readonly import ReadonlyStore

pytestmark = pytest.mark.slow

NOW = T0


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Three weeks of 6 chains, in which the newest problems are."""
    path = tmp_path_factory.mktemp("history") / "history.db"
    open_store(path).close()
    fill(f"sqlite:///{path}", lambda line: None, now=NOW, weeks=3, chains=6)
    return f"sqlite:///{path}"


def test_60_chains_with_different_names() -> None:
    assert len({chain.name for chain in CHAINS}) == 60


def test_every_run_is_marked_as_generated(url: str) -> None:
    with Store.open(url) as store:
        runs = store.runs.newest(limit=1000)
        assert len(runs) > 3 * 6
        assert {store.documents.get(run.id, GeneratedDocument) is not None for run in runs} == {True}
        assert store.recorded.counts() == (len(runs), 0)
        assert store.recorded.has_generated()
        assert all("generated" in text for run in runs for text in (run.id, run.cluster, run.suite))


def test_newest_runs_are_recent_and_not_in_the_future(url: str) -> None:
    with Store.open(url) as store:
        runs = store.runs.newest(limit=1000)
    assert runs[0].created_at > NOW - 3 * 86_400
    assert all(run.ended_at is not None and run.ended_at <= NOW for run in runs)


def test_sample_run_has_the_facts_of_pages_and_checks(url: str) -> None:
    with Store.open(url) as store:
        chain = "generated_clas/ResNet152/train_infer_python"
        (slower,) = store.runs.newest(chain=chain, status=Status.REGRESSION)
        facts = store.history.facts(slower.id)
        assert set(facts.step_status.values()) == {Status.PASS}
        assert len(facts.leg_status) == 4
        names = {item.metric for item in store.measurements.of(slower.id)}
        assert names == {"loss", "batch_cost", "ips", "top1", "inference_time"}
        checks = {result.check: result.status for result in store.checks.results(slower.id)}
        assert checks["speed.baseline"] is Status.REGRESSION
        rules = store.documents.get(slower.id, PolicyDocument)
        assert rules is not None, "the pages would show the limits of another policy"
        assert f"limit: {rules.root.floors.speed:.0%}" in slower.reason.replace(" %", "%")
        train = "norm_train_gpus_0_autocast_null/train"
        history = store.frames.history(slower.chain, train, "batch_cost", "v100")
        before, now = history["median"].iloc[-2], history["median"].iloc[-1]
        assert now > 1.07 * before
    listed = ReadonlyStore.of(url).pages.losses(slower.id)
    assert len(listed) == 20


def test_the_same_time_gives_the_same_runs(url: str, tmp_path: Path) -> None:
    again = tmp_path / "again.db"
    open_store(again).close()
    fill(f"sqlite:///{again}", lambda line: None, now=NOW, weeks=3, chains=6)
    with Store.open(url) as store, Store.open(f"sqlite:///{again}") as other:
        assert store.runs.newest(limit=1000) == other.runs.newest(limit=1000)


def test_a_database_with_real_runs_is_refused(tmp_path: Path) -> None:
    with open_store(tmp_path / "own.db") as store:
        store.runs.create(a_run())
    with pytest.raises(ConfigError, match="has runs that are not generated") as refused:
        fill(f"sqlite:///{tmp_path / 'own.db'}", lambda line: None, weeks=1, chains=1)
    assert "1 runs in" in refused.value.found
    with Store.open(f"sqlite:///{tmp_path / 'own.db'}") as store:
        assert len(store.runs.newest()) == 1


def test_a_second_history_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="has a sample history already"):
        fill(url, lambda line: None, now=NOW, weeks=1, chains=1)


def test_sample_history_fills_pages_of_decisions(tmp_path: Path) -> None:
    """Pages of alerts, quarantines, A/B comparisons, pull requests and scaling chains have content."""
    fill(f"sqlite:///{tmp_path / 'history.db'}", lambda line: None, now=NOW, weeks=6, chains=60)
    with Store.open(f"sqlite:///{tmp_path / 'history.db'}") as store:
        alerts = store.tracked_alerts.all()
        states = {alert.chain.split("/")[1]: alert.state.value for alert in alerts}
        assert states["ResNet18"] == states["PSENet"] == "new"
        assert states["T5_small"] == states["MaskRCNN"] == "acknowledged"
        grouped = {alert.group for alert in alerts if alert.chain.split("/")[1].startswith("ResNet")}
        assert len(grouped) == 1
        (slower,) = [alert for alert in alerts if "/MaskRCNN/" in alert.chain]
        assert slower.runs == 5
        assert [event.kind.value for event in store.tracked_alerts.events(slower.number)] == [
            "opened", "seen", "seen", "seen", "seen", "state", "owner", "comment",
        ]  # fmt: skip
        (quarantine,) = store.quarantines.all()
        assert (quarantine.check, quarantine.failed) == ("speed.baseline", 5)
        assert len(store.pulls.newest()) == 12
        newest = store.pulls.newest()[0]
        (own,) = load_pulls(store, repository=newest.repository, number=newest.number).attempts
        assert all(chain.base for chain in own.chains), "its chains have a run of the target branch"
        assert [result["status"] for _, result in store.ab_results.newest(0.0, limit=9)] == ["pass", "regression"]

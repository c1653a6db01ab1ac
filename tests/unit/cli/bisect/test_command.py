"""Input that `tipcflow bisect` refuses before anything runs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.bisections.repository import PARAMS, git, write_site
from tests.support.stories import a_run, losses, open_store, record_run

from tipcflow.cli.bisect.command import _search
from tipcflow.domain import ConfigError
from tipcflow.execute.bisection.subject import Subject
from tipcflow.execute.request import RunRequest
from tipcflow.store import Store

MODE = a_run().mode
CHAIN = "s/net/train_infer_python"


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("TIPCFLOW_HOME", str(home))
    monkeypatch.delenv("TIPCFLOW_DATABASE_URL", raising=False)
    return write_site(tmp_path)


@pytest.fixture
def store(configs: Path) -> Iterator[Store]:
    with open_store(configs.parent / "home" / "tipcflow.db") as opened:
        yield opened


def refused(configs: Path, metric: str, ends: tuple[str, str] | Path, **fields: str) -> str:
    known = {"params": PARAMS, "suite": "s", "mode": MODE, "cluster": "c", "config_dir": configs}
    request = RunRequest(**(known | fields))
    with pytest.raises(ConfigError) as error:
        _search(request, Subject("", MODE, "spec", metric), ends, 0.95, {}, as_json=False)
    return str(error.value)


def test_bad_input_is_named_before_any_run(store: Store, configs: Path) -> None:
    assert "unknown cluster; found 'nowhere'" in refused(configs, "batch_cost", ("v1", "v2"), cluster="nowhere")
    assert refused(configs, "seen", ("v1", "v2")) == (
        "METRIC: neither a lower nor a higher value of this metric is better; found 'seen'; "
        "expected failure, or a metric with a direction, such as batch_cost, ips or loss"
    )


def test_a_metric_that_stored_runs_lack_is_refused_with_known_metrics(store: Store, configs: Path) -> None:
    run = record_run(store, a_run(chain=CHAIN))
    store.measurements.add(losses(run.id, [0.1], metric="batch_cost", unit="s"))
    assert refused(configs, "ips", ("v1", "main")) == (
        f"METRIC: the newest run of {CHAIN} in {MODE} did not measure it; found 'ips'; "
        "expected failure, or one of batch_cost, loss"
    )


def test_a_params_file_that_an_end_lacks_is_refused(store: Store, configs: Path) -> None:
    suite = configs.parent / "checkout" / "suite"
    new = suite / PARAMS.replace("/net/", "/new/")
    new.parent.mkdir()
    new.write_text("third\n")
    git(suite, "add", "-A")
    git(suite, "commit", "-qm", "three")
    params = PARAMS.replace("/net/", "/new/")
    words = (
        f"PARAMS: suite s has no such params file at v1 (--good); found '{params}'; "
        "expected a file of test_tipc/configs/**/*.txt\n"
        f"  hint: similar: {PARAMS}"
    )
    assert refused(configs, "failure", ("v1", "main"), params=params) == words
    git(suite, "rm", "-q", params)
    git(suite, "commit", "-qm", "four")
    assert "has no such params file at main (--bad)" in refused(
        configs, "failure", ("main~1", "main"), params=params
    )
    builds = configs.parent / "builds.txt"
    builds.write_text("p==1\np==2\n")
    assert "has no such params file at v1 (--suite-ref)" in refused(
        configs, "failure", builds, params=params, suite_ref="v1"
    )
    assert "has no such params file; found" in refused(configs, "failure", builds, params=params)

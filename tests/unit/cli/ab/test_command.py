"""Input that `tipcflow ab` refuses before anything runs."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.bisections.repository import PARAMS, write_site
from tests.support.stories import a_run, open_store, record_run

from tipcflow.cli.ab.command import _compare
from tipcflow.domain import ConfigError
from tipcflow.execute.ab.progress import Limits
from tipcflow.execute.request import RunRequest

MODE = a_run().mode


@pytest.fixture
def request_of_v1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunRequest:
    """A request for a suite whose chain has one stored run."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("TIPCFLOW_HOME", str(home))
    monkeypatch.delenv("TIPCFLOW_DATABASE_URL", raising=False)
    with open_store(home / "tipcflow.db") as store:
        record_run(store, a_run(chain="s/net/train_infer_python"))
    return RunRequest(PARAMS, "s", MODE, "c", write_site(tmp_path), suite_ref="v1")


def test_until_decided_excludes_a_number_of_pairs(tipcflow: Callable[..., Any]) -> None:
    words = ("ab", "f.txt", "--suite", "s", "--mode", MODE, "--cluster", "nowhere", "--until-decided")
    assert tipcflow(*words, "--pairs", "5").err == (
        "config_error: --until-decided: excludes --pairs; found '--pairs 5'; expected one of both\n"
    )
    assert "unknown cluster; found 'nowhere'" in tipcflow(*words).err


@pytest.mark.parametrize(
    ("names", "limits", "fields", "words"),
    [
        (
            (),
            Limits(most_pairs=3),
            {},
            "--max-pairs: is too small for an error of 0.02; found '3'; expected at least 4",
        ),
        ((), Limits(pairs=2), {}, "--pairs: is too small for an error of 0.02; found '2'; expected at least 4"),
        (
            ("data_num",),
            Limits(),
            {},
            "--metric: neither a lower nor a higher value of this metric is better; found 'data_num'; "
            "expected one of loss",
        ),
        (
            ("loss", "ips"),
            Limits(),
            {},
            f"--metric: the newest run of s/net/train_infer_python in {MODE} did not measure it; found 'ips'; "
            "expected one of loss",
        ),
        (
            (),
            Limits(),
            {"params": "net/none.txt"},
            "PARAMS: suite s has no such params file at v1 (--a); found 'net/none.txt'; expected a file of "
            "test_tipc/configs/**/*.txt",
        ),
        ((), Limits(), {"cluster": "nowhere"}, "--cluster: unknown cluster; found 'nowhere'"),
    ],
)
def test_bad_input_is_named_by_its_option(
    request_of_v1: RunRequest, names: tuple[str, ...], limits: Limits, fields: dict[str, str], words: str
) -> None:
    first = replace(request_of_v1, **fields)
    with pytest.raises(ConfigError) as error:
        _compare(first, replace(first, suite_ref="main"), names, limits, as_json=False)
    assert str(error.value).startswith(words)

"""Input that `tipcflow bisect` refuses before anything runs."""

from pathlib import Path

import pytest

from tipcflow.cli.bisect.command import _search
from tipcflow.domain import ConfigError
from tipcflow.execute.bisection.subject import Subject
from tipcflow.execute.request import RunRequest

MODE = "lite_train_lite_infer"
REQUEST = RunRequest("f.txt", "toy", MODE, "nowhere", Path("configs"))


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("seen", "METRIC: neither a lower nor a higher value of this metric is better; found 'seen'"),
        ("batch_cost", "unknown cluster; found 'nowhere'"),
    ],
)
def test_bad_input_is_named_before_any_run(metric: str, words: str) -> None:
    subject = Subject("toy/toy/f", MODE, "spec", metric)
    with pytest.raises(ConfigError, match=words):
        _search(REQUEST, subject, ("v1", "v2"), 0.95, {}, as_json=False)

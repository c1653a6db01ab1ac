"""Input that `tipcflow ab` refuses before anything runs."""

from pathlib import Path

import pytest

from tipcflow.cli.ab.command import _compare
from tipcflow.domain import ConfigError
from tipcflow.execute.ab.progress import Limits
from tipcflow.execute.request import RunRequest

REQUEST = RunRequest("f.txt", "toy", "lite_train_lite_infer", "nowhere", Path("configs"))


@pytest.mark.parametrize(
    ("names", "limits", "words"),
    [
        (
            (),
            Limits(most_pairs=3),
            "--max-pairs: is too small for an error of 0.02; found '3'; expected at least 4",
        ),
        ((), Limits(pairs=2), "--pairs: is too small for an error of 0.02; found '2'; expected at least 4"),
        (("data_num",), Limits(), "--metric: neither a lower nor a higher value of this metric is better"),
        ((), Limits(), "unknown cluster; found 'nowhere'"),
    ],
)
def test_bad_input_is_named_by_its_option(names: tuple[str, ...], limits: Limits, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        _compare(REQUEST, REQUEST, names, limits, as_json=False)

"""Rules of a policy about actions of tipcflow."""

from pathlib import Path

import pytest

from tipcflow.config.loader import load_yaml
from tipcflow.config.policy import Policy
from tipcflow.domain import ConfigError


def policy(tmp_path: Path, text: str) -> Policy:
    path = tmp_path / "p.yaml"
    path.write_text(f"name: p\n{text}\n")
    return load_yaml(path, Policy)


def test_bisections_are_off_by_default_and_set_per_model(tmp_path: Path) -> None:
    assert policy(tmp_path, "").bisect.start == "never"
    text = "bisect: {start: never}\noverrides: [{model: big, because: it is big, set: {bisect: {start: all}}}]"
    known = policy(tmp_path, text)
    small, big = known.for_model("s", "small"), known.for_model("s", "big")
    assert (small.bisect.start, big.bisect.start) == ("never", "all")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bisect: {start: always}", "bisect.start"),
        ("bisect: {at_once: 0}", "bisect.at_once"),
        ("bisect: {max_runs: 0}", "bisect.max_runs"),
        ("bisect: regressions", "bisect"),
    ],
)
def test_invalid_rule_is_one_error_with_its_key(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        policy(tmp_path, text)

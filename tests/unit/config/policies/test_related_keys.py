"""A policy whose keys do not fit each other compares nothing: an error at loading, also with its overrides."""

from pathlib import Path

import pytest
from tests.support.expected.golden import assert_golden

from tipcflow.config.loader import parse_yaml
from tipcflow.config.policy import Policy
from tipcflow.config.run_documents import PolicyDocument
from tipcflow.domain import ConfigError

GOLDEN = Path(__file__).parents[3] / "golden" / "config" / "related_keys.txt"
HEAD = "name: x\n"
OVERRIDE = f"{HEAD}overrides:\n  - model: m\n    because: why\n    set: "
WRONG = (
    f"{HEAD}history: 3\n",
    f"{HEAD}z: 4\nmin_history: 21\n",
    f"{HEAD}history: 4\nmin_history: 5\n",
    f"{HEAD}history: 20\ncomparison:\n  seeds: 100\n",
    f"{HEAD}comparison:\n  new_environment: fail\n  seeds: 21\n",
    f"{HEAD}metrics:\n  ips: {{}}\n  batch_cost: {{part_of: batch_cost}}\n",
    f"{HEAD}metrics:\n  reader_cost: {{part_of: batch_csot}}\n",
    f"{HEAD}metrics:\n  batch_cost:\n    part_of: wall_time\n",
    f"{HEAD}metrics:\n  reader_cost: {{part_of: inference_time}}\n",
    f"{HEAD}metrics:\n  total_time: {{part_of: inference_time}}\n",
    f"{OVERRIDE}{{history: 4}}\n",
    f"{OVERRIDE}{{min_history: 21}}\n",
    f"{OVERRIDE}\n      comparison:\n        seeds: 30\n",
    f"{OVERRIDE}{{metrics: {{batch_cost: {{part_of: batch_cost}}}}}}\n",
)


def refused(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, Policy, file="p.yaml")
    return str(caught.value)


def test_keys_that_do_not_fit_each_other_are_refused() -> None:
    assert_golden(GOLDEN, "\n".join(refused(text) for text in WRONG) + "\n")


@pytest.mark.parametrize(
    "text",
    [
        "history: 5\n",
        "history: 2\nmin_history: 2\n",
        "history: 30\ncomparison: {seeds: 30}\n",
        "metrics: {epoch_time: {part_of: wall_time}, D_loss: {part_of: total_loss}, reader_cost: {part_of: ''}}\n",
    ],
)
def test_keys_that_fit_each_other_are_valid(text: str) -> None:
    parse_yaml(HEAD + text, Policy, file="p.yaml")


def test_overrides_that_are_invalid_only_together_are_a_config_error() -> None:
    text = f"{HEAD}overrides:\n  - {{because: a, set: {{history: 10}}}}\n"
    text += "  - {model: n, because: b, set: {z: 4}}\n  - {model: m, because: c, set: {min_history: 15}}\n"
    policy = parse_yaml(text, Policy, file="p.yaml")
    assert policy.for_model("s", "n").history == 10
    with pytest.raises(ConfigError) as caught:
        policy.for_model("s", "m")
    assert str(caught.value) == (
        "history: is too short for any comparison with overrides.0 and overrides.2 of policy x; found '10'; "
        "expected at least min_history, which is 15"
    )


def test_stored_policy_of_an_earlier_version_is_loaded() -> None:
    """Runs that were judged by it stay readable."""
    stored = PolicyDocument.load("run", {"name": "x", "history": 3, "metrics": {"ips": {"part_of": "ips"}}})
    assert stored.root.history == 3

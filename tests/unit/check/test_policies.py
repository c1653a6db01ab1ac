"""The shipped policies and references are read, and a wrong one is refused with its place."""

from pathlib import Path

import pytest

from tipcflow.config.loader import load_yaml, parse_yaml
from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.domain import ConfigError

CONFIGS = Path(__file__).parents[3] / "configs"


@pytest.mark.parametrize("path", sorted((CONFIGS / "policies").glob("*.yaml")), ids=lambda path: path.stem)
def test_policies(path: Path) -> None:
    policy = load_yaml(path, Policy)
    assert policy.name == path.stem
    assert policy.min_history >= 5
    assert (policy.parity.rtol, policy.parity.atol) == (1e-4, 1e-5)


def test_the_pull_request_policy_keeps_its_budget() -> None:
    assert load_yaml(CONFIGS / "policies" / "pr.yaml", Policy).budget_minutes == 15


@pytest.mark.parametrize("path", sorted((CONFIGS / "references").glob("*.yaml")), ids=lambda path: path.stem)
def test_references(path: Path) -> None:
    references = load_yaml(path, References)
    assert references.suite == path.stem
    assert references.references


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("name: x\nmetrics:\n  batchcost: {}\n", 3, "'batchcost' is no metric that can be judged"),
        ("name: x\nmetrics:\n  lr: {}\n", 3, "'lr' is no metric that can be judged"),
        ("name: x\nmin_history: 1\n", 2, "greater than or equal to 2"),
        ("name: x\nfloors: {speed: 0}\n", 2, "greater than 0"),
        ("name: x\nfloor: {speed: 0.2}\n", 2, "not permitted"),
        ("name: x\nparity:\n  rtol: .inf\n", 3, "finite"),
        ("name: x\nparity: {atol: .nan}\n", 2, "finite"),
        ("name: x\nloss: {rtol: .inf}\n", 2, "finite"),
        ("name: x\nfloors: {speed: .inf}\n", 2, "finite"),
        ("name: x\nmetrics:\n  ips: {floor: .inf}\n", 3, "finite"),
        ("name: x\naccuracy: {too_good: .inf}\n", 2, "finite"),
        ("name: x\nz: .inf\n", 2, "finite"),
        ("name: x\nbudget_minutes: .inf\n", 2, "finite"),
        ("name: x\nstep_deadline_minutes: .inf\n", 2, "finite"),
        ("name: x\nloss: {reproducible: maybe}\n", 2, "'exact', 'tolerance' or 'off'"),
    ],
)
def test_a_wrong_policy(text: str, line: int, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, Policy, file="p.yaml")
    assert (caught.value.line, words in str(caught.value)) == (line, True), str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("suite: s\nreferences:\n- {model: m, metric: top1, target: 0.5, tolerance: 0.1}\n", "because"),
        ("suite: s\nreferences:\n- {model: m, metric: acc, target: 0.5, tolerance: 0.1, because: b}\n", "'acc'"),
        (
            "suite: s\nreferences:\n- {model: m, metric: top1, target: .5, tolerance: -1, because: b}\n",
            "tolerance",
        ),
        ("suite: s\nreferences:\n- {model: m, metric: top1, target: .nan, tolerance: 0, because: b}\n", "finite"),
        ("suite: s\nreferences:\n- {model: m, metric: top1, target: -.inf, tolerance: 0, because: b}\n", "finite"),
        ("suite: s\nreferences:\n- {model: m, metric: top1, target: 1, tolerance: .inf, because: b}\n", "finite"),
    ],
)
def test_a_wrong_reference(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, References, file="r.yaml")
    assert (caught.value.line, words in str(caught.value)) == (3, True), str(caught.value)

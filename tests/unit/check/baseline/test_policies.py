"""The shipped policies and references are read, and a wrong one is refused with its place."""

from pathlib import Path
from types import ModuleType

import pytest

from tipcflow.check import CheckContext
from tipcflow.check.baseline.baseline import against_baseline
from tipcflow.check.numeric.reproducible import loss_reproducible
from tipcflow.config.loader import load_yaml, parse_yaml
from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.domain import ConfigError, MetricKey, PastRun, Status, losses_of

CONFIGS = Path(__file__).parents[4] / "configs"


@pytest.mark.parametrize("path", sorted((CONFIGS / "policies").glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_policies_are_valid(path: Path) -> None:
    policy = load_yaml(path, Policy)
    assert policy.name == path.stem
    assert policy.min_history >= 5
    assert (policy.parity.rtol, policy.parity.atol) == (1e-4, 1e-5)


def test_the_pull_request_policy_keeps_its_budget() -> None:
    policy = load_yaml(CONFIGS / "policies" / "pr.yaml", Policy)
    assert policy.budget_minutes + policy.confirm_minutes == 15


@pytest.mark.parametrize("path", sorted((CONFIGS / "references").glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_references_are_valid(path: Path) -> None:
    references = load_yaml(path, References)
    assert references.suite == path.stem
    assert references.references


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("name: x\nmetrics:\n  batchcost: {}\n", 3, "metric 'batchcost' cannot be evaluated"),
        ("name: x\nmetrics:\n  lr: {}\n", 3, "metric 'lr' cannot be evaluated"),
        ("name: x\nmin_history: 1\n", 2, "expected at least 2"),
        ("name: x\nfloors: {speed: 0}\n", 2, "expected more than 0"),
        ("name: x\nfloor: {speed: 0.2}\n", 2, "unknown key"),
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
def test_wrong_policy_is_refused_with_its_line(text: str, line: int, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, Policy, file="p.yaml")
    assert (caught.value.line, words in str(caught.value)) == (line, True), str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("suite: s\nreferences:\n- {model: m, metric: top1, target: 0.5, tolerance: 0.1}\n", "because"),
        (
            "suite: s\nreferences:\n- {model: m, metric: acuracy, target: 0.5, tolerance: 0.1, because: b}\n",
            "'acuracy'",
        ),
        (
            "suite: s\nreferences:\n- {model: m, metric: top1, target: .5, tolerance: -1, because: b}\n",
            "tolerance",
        ),
        ("suite: s\nreferences:\n- {model: m, metric: top1, target: .nan, tolerance: 0, because: b}\n", "finite"),
        ("suite: s\nreferences:\n- {model: m, metric: top1, target: -.inf, tolerance: 0, because: b}\n", "finite"),
        ("suite: s\nreferences:\n- {model: m, metric: top1, target: 1, tolerance: .inf, because: b}\n", "finite"),
    ],
)
def test_wrong_reference_is_refused_with_its_line(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_yaml(text, References, file="r.yaml")
    assert (caught.value.line, words in str(caught.value)) == (3, True), str(caught.value)


OVERRIDES = """\
name: x
metrics: {batch_cost: {floor: 0.3}, loss: {}}
overrides:
  - suite: Paddle*
    because: quiet nodes
    set: {metrics: {batch_cost: {floor: 0.1}}, z: 4}
  - model: res?et
    because: a small net
    set: {parity: {atol: 0.01}, metrics: {batch_cost: {floor: 0.05}}}
"""


@pytest.mark.parametrize(
    ("suite", "model", "floor", "z", "atol"),
    [
        ("toy", "toy", 0.3, 5, 1e-5),
        ("PaddleClas", "toy", 0.1, 4, 1e-5),
        ("PaddleClas", "resnet", 0.05, 4, 0.01),
        ("toy", "resnet", 0.05, 5, 0.01),
    ],
)
def test_overrides_change_only_the_named_fields(
    suite: str, model: str, floor: float, z: float, atol: float
) -> None:
    policy = parse_yaml(OVERRIDES, Policy, file="p.yaml").for_model(suite, model)
    assert (policy.metrics["batch_cost"].floor, policy.z, policy.parity.atol) == (floor, z, atol)
    assert (policy.metrics["loss"].floor, policy.parity.rtol, policy.overrides) == (None, 1e-4, ())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("{nonsense: 1}", "p.yaml:4: overrides.0.set.nonsense: unknown key; found '1'"),
        ("{metrics: {lr: {}}}", "metric 'lr' cannot be evaluated"),
        ("{name: y}", "cannot set name"),
        ("{z: -1}", "p.yaml:4: overrides.0.set.z: invalid value; found '-1'; expected more than 0"),
    ],
)
def test_a_wrong_override_is_refused(wrong: str, words: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse_yaml(f"name: x\noverrides:\n  - because: why\n    set: {wrong}\n", Policy, file="p.yaml")
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("override", "suite", "model", "status"),
    [
        # 30 % slower is unconfirmed by the shipped policy.
        ({"suite": "other", "set": {"floors": {"speed": 0.5}}}, "PaddleClas", "resnet", Status.UNCONFIRMED),
        ({"suite": "Paddle*", "set": {"floors": {"speed": 0.5}}}, "PaddleClas", "resnet", Status.PASS),
        ({"model": "res*", "set": {"floors": {"speed": 0.5}}}, "PaddleClas", "resnet", Status.PASS),
        ({"model": "vgg*", "set": {"floors": {"speed": 0.5}}}, "PaddleClas", "resnet", Status.UNCONFIRMED),
        ({"set": {"metrics": {"batch_cost": {"floor": 0.5}}}}, "PaddleClas", "resnet", Status.PASS),
        ({"set": {"metrics": {"batch_cost": {"z": 100}}}}, "PaddleClas", "resnet", Status.PASS),
        ({"set": {"metrics": {"ips": {"floor": 0.5}}}}, "PaddleClas", "resnet", Status.UNCONFIRMED),
    ],
)
def test_overrides_change_results(
    build: ModuleType, override: dict[str, object], suite: str, model: str, status: Status
) -> None:
    """Overrides per suite, model and metric apply to a run, in addition to the policy."""
    whole = {"name": "x", "floors": {"speed": 0.1}, "overrides": [{"because": "so", **override}]}
    policy = Policy.model_validate(whole).for_model(suite, model)
    past = tuple(
        PastRun(run=f"r{n}", medians={MetricKey("v/train", "", "batch_cost"): 1 + n / 50}) for n in (2, 0, 4, 1, 3)
    )
    facts = build.facts(measurements=tuple(build.series((1.35,), "batch_cost")))
    (result,) = against_baseline(facts, CheckContext(policy=policy, history=past))
    assert result.status is status, result.reason


def test_reproducibility_is_exact_or_within_a_tolerance_by_model(build: ModuleType) -> None:
    override = {
        "model": "gan_*",
        "because": "atomics",
        "set": {"loss": {"reproducible": "tolerance", "rtol": 0.01}},
    }
    rule = {"reproducible": "exact"}
    policy = Policy.model_validate({"name": "x", "loss": rule, "overrides": [override]})
    nearly = {key: tuple(one * 1.001 for one in curve) for key, curve in losses_of(build.measurements()).items()}
    past = PastRun(run="r", seed=2026, framework="paddlepaddle 3.3.1", suite_sha256="12" * 32, losses=nearly)
    for model, status in (("resnet", Status.FAILED), ("gan_large", Status.PASS)):
        context = CheckContext(policy=policy.for_model("s", model), history=(past,), run=build.run())
        assert loss_reproducible(build.facts(), context)[0].status is status


def test_shipped_policies_judge_accuracy_history_only_in_weekly_runs() -> None:
    """Lite runs evaluate few images: the accuracy of earlier runs is shown only, targets count."""
    shipped = {name: load_yaml(CONFIGS / "policies" / f"{name}.yaml", Policy) for name in ("pr", "weekly")}
    assert [shipped[name].accuracy.history for name in ("pr", "weekly")] == [False, True]
    for policy in shipped.values():
        assert policy.node_health.gating
        assert {"batch_cost", "inference_time", "peak_rss", "peak_gpu", "loss"} <= set(policy.metrics)
        assert all(rule.gating for name, rule in policy.metrics.items() if name != "ips")

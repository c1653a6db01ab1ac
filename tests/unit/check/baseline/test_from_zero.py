"""A metric whose earlier runs had 0, most of them or all."""

from types import ModuleType

import pytest

from tipcflow.check import CheckContext, Confirmation, judge, verdict
from tipcflow.config.policy import MetricRule, Policy
from tipcflow.domain import CheckResult, Facts, MetricKey, PastRun, Phase, Status

ALMOST = (0.0, 0.0, 0.0, 0.0)
# metric -> (earlier runs, value now, phase)
CHANGES = {
    "reader_cost": ((*ALMOST, 1e-5, 0.0), 5.0, Phase.TRAIN),
    "postprocess_time": ((*ALMOST, 0.01), 500.0, Phase.INFER),
    "peak_gpu": ((*ALMOST, 1e6), 80e9, Phase.RESOURCE),
    "loss": ((*ALMOST, 1e-6), 3.0, Phase.TRAIN),
}


def measured(build: ModuleType, name: str, value: float) -> tuple[Facts, MetricKey]:
    """The good run with this value of the metric, and its key."""
    phase = CHANGES[name][2]
    leg = build.ON if phase is Phase.INFER else ""
    step, rank = (build.INFER, -1) if leg else (build.TRAIN, 0)
    others = [one for one in build.measurements() if name != "loss" or one.metric != "loss"]
    values = tuple(value * (1 - number / 1000) for number in range(8)) if name == "loss" else (value,)
    extra = build.series(values, name, step=step, rank=rank, leg=leg, phase=phase)
    if name == "loss":
        extra += build.series(values, name, node="beta", rank=1)
    rank_of = f".rank{rank}" if phase is Phase.RESOURCE else ""
    return build.facts(measurements=(*others, *extra)), MetricKey(step, leg, f"{name}{rank_of}")


def judged(
    build: ModuleType, name: str, value: float, confirm: float | None = None, missing: str = ""
) -> tuple[Status, CheckResult]:
    """(status of the run, result of the metric)."""
    facts, key = measured(build, name, value)
    history = tuple(PastRun(run=f"r{number}", medians={key: one}) for number, one in enumerate(CHANGES[name][0]))
    confirmation = None
    if confirm is not None or missing:
        medians = {} if confirm is None else {key: confirm}
        confirmation = Confirmation(run="c", medians=medians, missing=missing)
    policy = Policy(name="x", metrics={name: MetricRule()}, min_history=5)
    results = judge(facts, CheckContext(policy=policy, history=history, confirmation=confirmation))
    (result,) = [one for one in results if one.metric == name and one.values.get("n")]
    return verdict(facts, results)[0], result


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_from_nearly_always_zero_is_suspected(build: ModuleType, name: str) -> None:
    run, result = judged(build, name, CHANGES[name][1])
    assert (run, result.status, result.values["confirm"]) == (Status.UNCONFIRMED, Status.UNCONFIRMED, True)


def test_the_confirm_run_decides(build: ModuleType) -> None:
    assert judged(build, "reader_cost", 5.0, confirm=5.1)[0] is Status.REGRESSION
    assert judged(build, "reader_cost", 5.0, confirm=1e-5)[1].status is Status.PASS
    assert judged(build, "reader_cost", 5.0, missing="no time left")[0] is Status.REGRESSION
    assert judged(build, "peak_gpu", 1.5e6, missing="no time left")[0] is Status.UNCONFIRMED


@pytest.mark.parametrize(("name", "value"), [("reader_cost", 5e-4), ("peak_gpu", 1.1e6), ("loss", 1e-6)])
def test_a_value_like_that_of_an_earlier_run_is_not_suspected(build: ModuleType, name: str, value: float) -> None:
    run, result = judged(build, name, value)
    assert (run, result.status) == (Status.PASS, Status.INSUFFICIENT_DATA)

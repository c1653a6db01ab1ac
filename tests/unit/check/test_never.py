"""Invariant: whatever the states of steps and legs, missing or broken work is never a pass."""

import math
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tipcflow.check import CheckContext, judge, verdict
from tipcflow.domain import MetricKey, PastRun, Phase, Status, losses_of, medians_of
from tipcflow.report import as_text, certificate, junit, markdown, verify

pytestmark = pytest.mark.slow

STEPS = ("prepare", "v/train", "v/eval", "v/export", "v/infer_cpu", "v/infer_gpu")
LEGS = ("v/infer_cpu/cpu_onednn_threads1_bs1", "v/infer_cpu/cpu_threads1_bs1", "v/infer_gpu/gpu_bs1")
# Possible states of a step or a leg.
SAID = st.sampled_from(
    [Status.PASS, Status.NOT_RUN, Status.BLOCKED, Status.CANCELLED, Status.INFRA_FAILURE, Status.FAILED]
)
GREEN = (Status.PASS, Status.IMPROVEMENT)
ENDED = (Status.PASS, Status.NOT_RUN)


@given(
    st.dictionaries(st.sampled_from(STEPS), SAID),
    st.dictionaries(st.sampled_from(LEGS), SAID),
    st.sets(st.integers(0, 6)),
    st.booleans(),
)
def test_runs_with_missing_or_broken_work_are_never_green(
    build: ModuleType, steps: dict[str, Status], legs: dict[str, Status], lost: set[int], logged: bool
) -> None:
    facts = build.facts(
        step_status=steps,
        leg_status=legs,
        records=tuple(record for number, record in enumerate(build.records()) if number not in lost),
        measurements=build.facts().measurements if logged else (),
        step_reason={},
    )
    results = judge(facts, CheckContext())
    status, reason = verdict(facts, results)
    assert reason
    if status in GREEN:
        assert logged
        assert steps["v/train"] is Status.PASS
        assert {0, 1}.isdisjoint(lost), "both nodes' exit records are there"
        # The GPU step is not possible here: that it is blocked adds nothing.
        own = [result for key, result in (*steps.items(), *legs.items()) if "gpu" not in key]
        assert all(result in ENDED for result in own) or Status.NOT_RUN in own
        assert set(STEPS) - {"v/infer_gpu"} <= set(steps)
        assert steps["v/infer_cpu"] is not Status.PASS or set(LEGS[:2]) <= set(legs)
    run = build.run(status=status, reason=reason)
    assert verify(certificate(facts, run, results)) == []
    assert junit(facts, run, results).count("<testsuite ") == 4
    assert markdown(facts, run, results).startswith(f"## {status}")


@given(st.lists(st.floats(), max_size=12), st.lists(st.floats(), max_size=12), st.lists(st.floats(), max_size=7))
def test_no_number_breaks_a_check(
    build: ModuleType, losses: list[float], costs: list[float], past: list[float]
) -> None:
    measured = (
        *build.series(tuple(losses)),
        *build.series(tuple(costs), "batch_cost"),
        *build.series(tuple(costs), "reader_cost"),
        *build.series(tuple(losses), "top1", step=build.EVAL, phase=Phase.EVAL),
    )
    scores = {"a.png": tuple(losses), "b.png": tuple(costs)}
    facts = build.facts(
        measurements=measured,
        predictions={f"{build.INFER}/{leg}": scores for leg in (build.ON, build.OFF)},
    )
    history = tuple(
        PastRun(
            run=f"r{n}",
            seed=2026,
            framework="paddlepaddle 3.3.1",
            medians={**medians_of(measured), MetricKey("v/train", "", "batch_cost"): value},
            losses=losses_of(measured),
        )
        for n, value in enumerate(past)
    )
    results = judge(facts, CheckContext(history=history))
    status, reason = verdict(facts, results)
    if any(not math.isfinite(loss) for loss in losses):
        assert status is Status.FAILED
    assert verify(certificate(facts, build.run(status=status, reason=reason), results)) == []
    assert "NaN" not in as_text(certificate(facts, build.run(status=status, reason="r"), results))

"""loss.reproducible: the same seed gives the same losses, or losses within the known noise."""

import math
import random
from dataclasses import replace
from types import ModuleType

import pytest

from tipcflow.check.numeric.reproducible import loss_reproducible
from tipcflow.config.suite import Prints
from tipcflow.domain import CurveKey, LossKey, PastRun, Status, losses_of

PASS, FAILED, OPEN = Status.PASS, Status.FAILED, Status.INSUFFICIENT_DATA


def test_equal_losses_are_reproducible(build: ModuleType) -> None:
    (result,) = loss_reproducible(build.facts(), build.loss_context(build.past()))
    assert (result.status, result.reason) == (
        PASS,
        "2 ranks x 8 losses equal those of run earlier, bit for bit as printed",
    )


def test_the_first_divergent_iteration_is_named(build: ModuleType) -> None:
    other = {key: (*values[:5], values[5] + 1e-9, *values[6:]) for key, values in build.past().losses.items()}
    other[LossKey(build.TRAIN, CurveKey("beta", 1))] = (
        9.0,
        *build.past().losses[LossKey(build.TRAIN, CurveKey("beta", 1))][1:],
    )
    (result,) = loss_reproducible(build.facts(), build.loss_context(build.past(losses=other)))
    assert result.status is FAILED
    assert result.reason.startswith("differs from run earlier from iteration 1 on (node beta, rank 1): 2.44")
    assert result.values["where"] == "beta, rank 1"
    only_alpha = {LossKey(build.TRAIN, CurveKey("alpha", 0)): other[LossKey(build.TRAIN, CurveKey("alpha", 0))]}
    (result,) = loss_reproducible(build.facts(), build.loss_context(build.past(losses=only_alpha)))
    assert result.values["first_divergent"] == 6
    (result,) = loss_reproducible(
        build.facts(), build.loss_context(build.past(losses=only_alpha), reproducible="tolerance", rtol=1e-6)
    )
    assert result.status is PASS


def test_losses_that_only_the_suite_names_are_compared(build: ModuleType) -> None:
    facts = build.renamed("margin")
    listed = Prints(losses=("marg*",))
    curves = losses_of(facts.measurements, listed.losses)
    assert {key.curve.metric for key in curves} == {"margin"}
    moved = {key: (*curve[:-1], curve[-1] + 0.5) for key, curve in curves.items()}
    for known, status in ((curves, PASS), (moved, FAILED)):
        compared = replace(build.loss_context(build.past(losses=known)), prints=listed)
        assert loss_reproducible(facts, compared)[0].status is status
    undeclared = build.loss_context(build.past(losses=curves))
    assert loss_reproducible(facts, undeclared)[0].status is OPEN


def test_fewer_iterations_than_before_are_a_difference(build: ModuleType) -> None:
    longer = {key: (*values, 0.5) for key, values in build.past().losses.items()}
    (result,) = loss_reproducible(build.facts(), build.loss_context(build.past(losses=longer)))
    assert (result.status, "8 against 9 iterations" in result.reason) == (FAILED, True)
    assert result.values["code"] == "other_length"


def test_nan_equals_nan_here(build: ModuleType) -> None:
    facts = build.with_losses((2.0, math.nan, 1.0, 0.5))
    same = build.past(losses=losses_of(facts.measurements))
    assert loss_reproducible(facts, build.loss_context(same))[0].status is PASS


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"seed": 7}, "no comparable run: seed changed (7 -> 2026) since "),
        ({"framework": "paddlepaddle 2.6.2"}, "framework changed (paddlepaddle 2.6.2 -> paddlepaddle 3.3.1)"),
        ({"suite_sha256": "99" * 32}, f"the code of the suite changed ({'9' * 12} -> "),
        (
            {"seed": None, "framework": ""},
            "seed changed (None -> 2026) and framework changed (unknown -> paddle",
        ),
    ],
)
def test_differences_are_reported(build: ModuleType, changes: dict[str, object], words: str) -> None:
    (result,) = loss_reproducible(build.facts(), build.loss_context(build.past(**changes)))
    assert result.status is OPEN
    assert words in result.reason


def test_the_latest_run_that_is_the_same_counts(build: ModuleType) -> None:
    older = build.past(run="older", losses=dict.fromkeys(build.past().losses, (0.0,)))
    newest = build.past(run="newest", seed=1)
    (result,) = loss_reproducible(build.facts(), build.loss_context(older, build.past(), newest))
    assert (result.status, result.values["compared_with"]) == (PASS, "run earlier")


def test_losses_need_seed_history_and_the_same_nodes(build: ModuleType) -> None:
    unseeded = build.facts(plan=build.plan(seed=None))
    assert "no seed" in loss_reproducible(unseeded, build.loss_context(build.past()))[0].reason
    assert "no earlier" in loss_reproducible(build.facts(), build.loss_context())[0].reason
    moved = build.past(losses={LossKey("v/train", CurveKey("gamma", 0)): (1.0,)})
    assert loss_reproducible(build.facts(), build.loss_context(moved))[0].status is OPEN


def test_repeats_within_a_run_are_compared(build: ModuleType) -> None:
    plan = build.plan()
    twin = plan.step(build.TRAIN).model_copy(update={"id": "v/train_2", "repeat": 2})
    both = plan.model_copy(update={"steps": (*plan.steps, twin)})
    same = [*build.measurements(), *build.series(build.CURVE, step="v/train_2")]
    ended = build.facts().step_status | {"v/train_2": PASS}
    facts = build.facts(plan=both, measurements=tuple(same), step_status=ended)
    results = loss_reproducible(facts, build.loss_context())
    assert [(r.step, r.status) for r in results] == [(build.TRAIN, OPEN), ("v/train_2", OPEN), ("v/train_2", PASS)]
    other = [*build.measurements(), *build.series((*build.CURVE[:3], 7.0, *build.CURVE[4:]), step="v/train_2")]
    facts = build.facts(plan=both, measurements=tuple(other), step_status=ended)
    results = loss_reproducible(facts, build.loss_context())
    assert (results[-1].status, results[-1].values["first_divergent"]) == (FAILED, 4)


def test_a_repeated_training_is_compared_with_one_that_was_not(build: ModuleType) -> None:
    plan = build.plan()
    train = plan.step(build.TRAIN)
    twice = [train.model_copy(update={"id": f"v_repeat_{n}/train", "repeat": n}) for n in (1, 2)]
    steps = (*(one for one in plan.steps if one.id != train.id), *twice)
    logged = [one for step in twice for one in build.series(build.CURVE, step=step.id)]
    ended = build.facts().step_status | {step.id: PASS for step in twice}
    made = plan.model_copy(update={"steps": steps})
    facts = build.facts(plan=made, measurements=tuple(logged), step_status=ended)
    results = loss_reproducible(facts, build.loss_context(build.past()))
    assert [(one.status, one.values["compared_with"]) for one in results] == [
        (PASS, "run earlier"),
        (PASS, "run earlier"),
        (PASS, "v_repeat_1/train"),
    ]
    before = build.past(losses=losses_of(logged))
    assert loss_reproducible(build.facts(), build.loss_context(before))[0].status is PASS


@pytest.mark.parametrize("how", ["cancelled", "infra_failure", "failed"])
def test_an_interrupted_training_never_fails_by_its_length(build: ModuleType, how: str) -> None:
    """Ctrl-C or a lost node while training: the run is cancelled or infra_failure, not the model's failure."""
    longer = {key: (*values, 0.5, 0.4) for key, values in build.past().losses.items()}
    ended = build.facts().step_status | {build.TRAIN: Status(how)}
    facts = build.facts(step_status=ended)
    (result,) = loss_reproducible(facts, build.loss_context(build.past(losses=longer)))
    assert result.status is OPEN
    assert result.reason == f"the training is {how}: the first 8 losses equal those of run earlier"
    other = dict.fromkeys(longer, (9.0,) * 10)
    (result,) = loss_reproducible(facts, build.loss_context(build.past(losses=other)))
    assert (result.status, result.values["first_divergent"]) == (OPEN, 1)


def test_an_interrupted_repeat_never_fails_by_its_length(build: ModuleType) -> None:
    plan = build.plan()
    twin = plan.step(build.TRAIN).model_copy(update={"id": "v/train_2", "repeat": 2})
    both = plan.model_copy(update={"steps": (*plan.steps, twin)})
    short = (*build.measurements(), *build.series(build.CURVE[:3], step="v/train_2"))
    for broken in ("v/train_2", build.TRAIN):
        ended = build.facts().step_status | {"v/train_2": PASS, broken: Status.CANCELLED}
        facts = build.facts(plan=both, measurements=short, step_status=ended)
        assert loss_reproducible(facts, build.loss_context())[-1].status is OPEN


def noisy(build: ModuleType, count: int, spread: float, **changes: object) -> list[PastRun]:
    source = random.Random(7)
    return [
        build.past(
            run=f"r{number}",
            losses={
                key: tuple(one * (1 + source.uniform(-spread, spread)) for one in curve)
                for key, curve in build.past().losses.items()
            },
            **changes,
        )
        for number in range(count)
    ]


def test_nondeterministic_training_is_compared_within_learned_noise(build: ModuleType) -> None:
    learned = build.loss_context(*noisy(build, 6, 1e-2), reproducible="learned")
    (result,) = loss_reproducible(build.facts(), learned)
    assert (result.status, "6 earlier runs" in result.reason) == (PASS, True), result.reason
    other = build.with_losses(tuple(one * 1.3 if at >= 4 else one for at, one in enumerate(build.CURVE)))
    (result,) = loss_reproducible(other, learned)
    assert (result.status, result.values["first_divergent"]) == (FAILED, 5)


def test_a_gpu_training_may_differ_in_the_last_digit(build: ModuleType) -> None:
    """0.90001 against 0.9 fails a suite that declares its training deterministic, and no other."""
    nearly = {key: tuple(one + 1e-5 for one in curve) for key, curve in build.past().losses.items()}
    rules = build.loss_context(build.past(losses=nearly), reproducible="learned")
    assert loss_reproducible(build.facts(), rules)[0].status is PASS
    exact = build.facts(plan=build.plan(deterministic=True))
    assert loss_reproducible(exact, rules)[0].status is FAILED


def test_with_few_runs_a_difference_is_shown_and_does_not_count(build: ModuleType) -> None:
    rules = build.loss_context(*noisy(build, 3, 0.1), reproducible="learned")
    (result,) = loss_reproducible(build.facts(), rules)
    assert result.status is OPEN
    assert "3 of 5 earlier trainings with this seed are known" in result.reason


def test_equal_losses_across_versions_are_required_only_if_learned(build: ModuleType) -> None:
    versions = [
        one.model_copy(update={"framework": f"paddlepaddle 3.{n % 2}.0"})
        for n, one in enumerate(noisy(build, 6, 1e-3))
    ]
    other = build.with_losses(tuple(one * 1.5 for one in build.CURVE))
    learned = build.loss_context(*versions, reproducible="learned")
    assert loss_reproducible(build.facts(), learned)[0].status is PASS
    assert loss_reproducible(other, learned)[0].status is FAILED
    one_version = [one.model_copy(update={"framework": "paddlepaddle 3.0.0"}) for one in versions]
    assert loss_reproducible(other, build.loss_context(*one_version, reproducible="learned"))[0].status is OPEN
    exact = build.facts(plan=build.plan(deterministic=True), measurements=other.measurements)
    assert loss_reproducible(exact, learned)[0].status is OPEN

"""Length of a training by its logs, compared with its peers, the params file and its own lines."""

from types import ModuleType

import pytest

from tipcflow.domain import Facts, PrintedProgress, Status

from .test_evidence import judged, with_length

PASS, FAILED = Status.PASS, Status.FAILED


def trained(build: ModuleType, alpha: list[tuple[int, int]], beta: list[tuple[int, int]], **length: int) -> Facts:
    """Both ranks log losses at the given (epoch, iteration)."""
    logged = [
        build.series((2.0 / (at + 1),), node=node, rank=rank, ordinal=at, epoch=epoch, iteration=iteration)[0]
        for rank, (node, places) in enumerate((("alpha", alpha), ("beta", beta)))
        for at, (epoch, iteration) in enumerate(places)
    ]
    rest = [one for one in build.measurements() if one.step != build.TRAIN]
    return build.facts(measurements=(*logged, *rest), **with_length(build, **length))


def places(epochs: int, iterations: int, *, first: int = 1, every: int = 1) -> list[tuple[int, int]]:
    return [
        (epoch, iteration) for epoch in range(first, first + epochs) for iteration in range(0, iterations, every)
    ]


WHOLE = places(2, 5)


@pytest.mark.parametrize(
    ("alpha", "beta", "length", "missing"),
    [
        (WHOLE, WHOLE, {"epochs": 2}, ""),
        (
            WHOLE,
            WHOLE[:1],
            {"epochs": 2},
            "rank 1 on node beta logged 1 of 10 iterations that another rank logged",
        ),
        (WHOLE, WHOLE[:8], {"epochs": 2}, "rank 1 on node beta logged 8 of 10 iterations"),
        (
            WHOLE[:6],
            WHOLE[:6],
            {"epochs": 2},
            "rank 0 on node alpha logged 1 of 5 iterations in the last epoch (2)",
        ),
        (WHOLE[:5], WHOLE[:5], {"epochs": 2}, "rank 0 on node alpha logged 1 of 2 epochs"),
        (places(3, 5), places(3, 5), {"epochs": 2}, "rank 0 on node alpha logged 3 epochs; 2 are declared"),
        (places(2, 5, first=0), places(2, 5, first=0), {"epochs": 2}, ""),
        (places(1, 5, first=0), places(1, 5, first=0), {"epochs": 2}, "logged 1 of 2 epochs"),
        # A resumed training counts from where it was.
        (places(2, 5, first=11), places(2, 5, first=11), {"epochs": 2}, ""),
        # One line more or less in an epoch results from printing every n iterations.
        ([(1, 10), (2, 20), (3, 30), (3, 40)], [(1, 10), (2, 20), (3, 30)], {"epochs": 3}, ""),
        ([(0, at) for at in range(0, 50, 20)], [(0, at) for at in range(0, 50, 20)], {"iterations": 50}, ""),
        ([(-1, 5), (-1, 10)], [(-1, 5), (-1, 10)], {"iterations": 10}, ""),
        ([(-1, 1), (-1, 2), (-1, 3)], [(-1, 1), (-1, 2), (-1, 3)], {"iterations": 10}, "iterations up to 3 of 10"),
        # A line every ten iterations of three per epoch: not every epoch has one.
        ([(3, 1), (7, 2)], [(3, 1), (7, 2)], {"epochs": 9}, ""),
        ([(3, 1)], [(3, 1)], {"epochs": 6}, ""),
        ([(3, 1), (7, 2)], [(3, 1), (7, 2)], {"epochs": 20}, "rank 0 on node alpha logged 7 of 20 epochs"),
        # Logs without epochs or iterations are not judged by them.
        ([(1, -1), (2, -1)], [(1, -1), (2, -1)], {"epochs": 2}, ""),
        ([(-1, -1)], [(-1, -1)], {"epochs": 2}, ""),
    ],
)
def test_mode_and_length_of_training_are_compared_with_the_declared(
    build: ModuleType,
    alpha: list[tuple[int, int]],
    beta: list[tuple[int, int]],
    length: dict[str, int],
    missing: str,
) -> None:
    result = judged(trained(build, alpha, beta, **length))
    assert (result.status is FAILED) is bool(missing), result.reason
    assert missing in result.reason
    benchmark = trained(build, alpha, beta, **length)
    plan = benchmark.plan.model_copy(update={"mode": "benchmark_train"})
    assert judged(benchmark.model_copy(update={"plan": plan})).status is PASS


@pytest.mark.parametrize(
    ("alpha", "total", "missing"),
    [
        (places(1, 6), 10, "rank 0 on node alpha logged iterations up to 5 of 10 in the last epoch"),
        (places(2, 9), 10, "logged iterations up to 8 of 10 in the last epoch"),
        ([(-1, 10), (-1, 20), (-1, 30)], 100, "rank 0 on node alpha logged iterations up to 30 of 100"),
        (places(1, 10), 10, ""),
        (places(1, 10, every=4), 10, ""),
        ([(-1, 50), (-1, 100)], 100, ""),
        # One line per epoch does not show how often a line is printed.
        ([(1, 0), (2, 0)], 10, ""),
    ],
)
def test_training_reaches_the_printed_number_of_iterations(
    build: ModuleType, alpha: list[tuple[int, int]], total: int, missing: str
) -> None:
    """All ranks leave early in the only epoch: neither peers nor earlier epochs show it."""
    epochs = len({epoch for epoch, _ in alpha}) if alpha[0][0] >= 0 else 1
    facts = trained(build, alpha, alpha, epochs=epochs)
    printed = tuple(
        PrintedProgress(node=node, rank=rank, iteration=alpha[-1][1], total=total)
        for rank, node in enumerate(("alpha", "beta"))
    )
    result = judged(facts.model_copy(update={"progress": {build.TRAIN: printed}}))
    assert (result.status is FAILED) is bool(missing), result.reason
    assert missing in result.reason
    # Another counter, and a training that a time limit or `max_iters` ends.
    other = tuple(one.model_copy(update={"iteration": one.iteration + 500}) for one in printed)
    assert judged(facts.model_copy(update={"progress": {build.TRAIN: other}})).status is PASS
    limited = trained(build, alpha, alpha).model_copy(update={"progress": {build.TRAIN: printed}})
    assert judged(limited).status is PASS


@pytest.mark.parametrize(
    ("lines", "missing"),
    [
        (5, ""),
        (4, "rank 0 on node alpha logged 4 of 5 epochs"),
        (1, "rank 0 on node alpha logged 1 of 5 epochs"),
    ],
)
def test_epochs_of_one_iteration_are_counted_by_their_lines(build: ModuleType, lines: int, missing: str) -> None:
    """PaddleGAN prints the first iteration of an epoch with the number of the epoch before it."""
    logged = [(max(1, number), 0) for number in range(lines)]
    printed = tuple(
        PrintedProgress(node=node, rank=rank, iteration=0, total=1) for rank, node in enumerate(("alpha", "beta"))
    )
    facts = trained(build, logged, logged, epochs=5).model_copy(update={"progress": {build.TRAIN: printed}})
    result = judged(facts)
    assert (result.status is FAILED) is bool(missing), result.reason
    assert missing in result.reason

"""The shipped PyTorch suite on two nodes, by `tipcflow run`: three tests, each started in two ways."""

import pytest
from tests.support import certify

from tipcflow.domain import Run, Status, StepKind

SUITE = "pytorch_multinode"


def params(test: str, launch: str) -> str:
    return f"test_tipc/configs/{test}/train_{launch}.txt"


def losses(site: certify.Site, run: Run) -> dict[int, list[float]]:
    """Rank -> losses of a training that passed."""
    with site.store() as store:
        train = next(step for step in store.plans.get(run.id).steps if step.kind is StepKind.TRAIN)
        status, reason = store.steps.statuses(run.id)[train.id]
        assert status == "pass", reason
        found = sorted(store.measurements.of(run.id, metric="loss"), key=lambda sample: sample.ordinal)
    values: dict[int, list[float]] = {}
    for sample in found:
        if sample.phase.value == "train":
            values.setdefault(sample.rank, []).append(sample.value)
    return values


def check_status(site: certify.Site, run: Run, check: str) -> Status:
    with site.store() as store:
        return next(result.status for result in store.checks.results(run.id) if result.check == check)


@pytest.mark.parametrize(("launch", "world"), [("init_method", 2), ("torchrun", 4)])
@pytest.mark.parametrize(("test", "steps"), [("toy", 20), ("mnist", 24), ("data", 24)])
def test_pytorch_chain_passes_on_two_nodes(
    site: certify.Site, test: str, steps: int, launch: str, world: int
) -> None:
    outcome = site.run(params=params(test, launch), suite=SUITE)
    assert outcome.code == 0, outcome.output
    assert outcome.run.status is Status.PASS
    found = losses(site, outcome.run)
    assert sorted(found) == list(range(world))
    # Four ranks have half of the images of two.
    expected = steps if test == "toy" else steps * 2 // world
    assert {len(values) for values in found.values()} == {expected}
    assert all(values[-1] < values[0] for values in found.values()), found
    checks = ["ran.world_size", "ran.group", "ran.training", "loss.falling"]
    # The toy has no optimizer.
    for check in checks + ["ran.weights"] * (test != "toy"):
        assert check_status(site, outcome.run, check) is Status.PASS, check
    assert site.left_behind() == []


def test_equal_seeds_reproduce_the_losses(site: certify.Site) -> None:
    chain = params("mnist", "init_method")
    first, second = (site.run("--seed", "3", params=chain, suite=SUITE) for _ in range(2))
    assert losses(site, first.run) == losses(site, second.run)
    assert check_status(site, second.run, "loss.reproducible") is Status.PASS


def test_a_rank_that_never_joins_is_named(site: certify.Site) -> None:
    """The rank of node b sleeps before it joins: rank 0 ends after --timeout and names the missing rank."""
    script = site.suite / "mmmg_mnist.py"
    text = script.read_text()
    started = "    place = start(args)\n"
    assert started in text
    script.write_text(
        text.replace(started, f"    import time\n\n    time.sleep(3600 * (args.rank == 1))\n{started}")
    )
    path = site.suite / params("mnist", "init_method")
    path.write_text(path.read_text().replace("--log-interval 1", "--log-interval 1 --timeout 20"))
    site.configure_policy(retries={"communication": 0})
    outcome = site.run(params=params("mnist", "init_method"), suite=SUITE)
    assert outcome.code != 0
    assert "rendezvous timed out after 20 s: rank 1 of 2 did not join" in (outcome.run.reason or ""), (
        outcome.output
    )
    assert site.left_behind() == []

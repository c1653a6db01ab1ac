"""The result of a scaling chain from the runs of its topologies."""

from pathlib import Path

import pytest
from tests.support.stories import a_run
from tests.unit.report.overview.test_scaling import a_series, a_topology

from tipcflow.domain import Status
from tipcflow.domain.run.scaling import ScaledTopology, ScalingDocument
from tipcflow.execute.request import RunRequest
from tipcflow.execute.scaling.result import Measured, exit_code_of, usual_spreads, worst_status
from tipcflow.execute.scaling.series import Series
from tipcflow.parse.scaling.scaling import Scaled
from tipcflow.store import Store


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ((Status.PASS, Status.NOT_RUN), 0),
        ((Status.PASS, Status.INFRA_FAILURE), 5),
        ((Status.FAILED, Status.INFRA_FAILURE), 1),
        ((Status.PASS, Status.CANCELLED), 3),
    ],
)
def test_exit_code_is_that_of_the_worst_run(statuses: tuple[Status, ...], code: int) -> None:
    assert exit_code_of(result(statuses, with_speed=len(statuses))) == code


def test_result_without_a_run_has_no_status() -> None:
    empty = result((Status.NOT_RUN,), with_speed=0)
    assert (worst_status(empty), exit_code_of(empty)) == (None, 0)


def test_pass_without_a_speed_is_a_failure() -> None:
    assert exit_code_of(result((Status.PASS, Status.PASS), with_speed=1)) == 1


def test_usual_spread_is_the_mean_of_three_earlier_series(tmp_path: Path) -> None:
    request = RunRequest(params="p", suite="s", mode="m", cluster="c", config_dir=tmp_path)
    series = Series(request, (), 4, 0, "fp32", "printed", 0, 1)
    with Store.open(f"sqlite:///{tmp_path / 'metrics.db'}") as store:
        now = store.now()
        for place, (precision, spread) in enumerate(
            [("amp", 0.5), ("fp32", 0.01), ("fp32", 0.02), ("fp32", 0.03), ("fp32", 0.9)]
        ):
            run = a_run(f"r{place}", created_at=now + place)
            store.runs.create(run)
            several = a_topology("1n1g", 1, 100.0, spread=spread, repeats=5)
            single = a_topology("1n2g", 2, 190.0, spread=0.0, repeats=1)
            store.documents.put(run.id, a_series(several, single, precision=precision))
            usual = usual_spreads(store, run, series)
            assert usual == ({("1n1g", 4): pytest.approx(0.02)} if place == 4 else {})


def result(statuses: tuple[Status, ...], *, with_speed: int) -> Measured:
    entries = tuple(
        ScaledTopology(topology=f"{number}n1g", run="" if status is Status.NOT_RUN else "r", status=status)
        for number, status in enumerate(statuses, start=1)
    )
    speed = {"average_speed": 1, "median_speed": 1, "speedup": 1, "efficiency": 1, "repeats": 1, "speeds": {1: 1}}
    common = {"model": "m", "devices": 1, "batch_size_per_device": 4, **speed}
    rows = [Scaled.model_validate({"topology": entry.topology, **common}) for entry in entries[:with_speed]]
    document = ScalingDocument(precision="fp32", repeats=1, rule="printed", skip=0, take=1, topologies=entries)
    return Measured(rows, document, [])

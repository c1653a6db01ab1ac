"""The result of a scaling chain from the runs of its topologies."""

import pytest

from tipcflow.domain import Status
from tipcflow.domain.run.scaling import ScaledTopology, ScalingDocument
from tipcflow.execute.scaling.result import Measured, exit_code_of, worst_status
from tipcflow.parse.scaling.scaling import Scaled


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

"""Series of scaling chains, and the series that each is compared with."""

import csv
import io

from tests.support.stories import T0, a_run

from tipcflow.domain import Status
from tipcflow.domain.run.scaling import ScaledTopology, ScalingDocument
from tipcflow.report.overview.scaling import ScalingList, scaling_list
from tipcflow.report.overview.text import csv_of

DAY = 86_400.0


def a_topology(name: str, devices: int, median: float | None, **fields: object) -> ScaledTopology:
    entry = ScaledTopology(topology=name, devices=devices, batch_size_per_device=4, median_speed=median)
    return entry.model_copy(update=fields)


def a_series(*topologies: ScaledTopology, precision: str = "fp32") -> ScalingDocument:
    return ScalingDocument(
        precision=precision, repeats=1, rule="printed", skip=0, take=1, topologies=topologies, notes=("note",)
    )


def listed(documents: dict[str, ScalingDocument], *, since: float = 0.0) -> ScalingList:
    runs = {name: a_run(name, created_at=T0 + DAY * place) for place, name in enumerate(documents)}
    return scaling_list(documents, runs, at=T0 + 10 * DAY, days=30, since=since)


def test_a_series_is_compared_with_the_one_before() -> None:
    old = a_series(a_topology("1n1g", 1, 100.0), a_topology("1n2g", 2, 180.0))
    other = a_series(a_topology("1n1g", 1, 500.0), precision="amp")
    new = a_series(
        a_topology("1n1g", 1, 110.0),
        a_topology("1n2g", 2, 180.0, batch_size_per_device=8),
        a_topology("2n1g", 2, None),
    )
    overview = listed({"old": old, "other": other, "new": new})
    assert [(series.run, series.previous) for series in overview.series] == [
        ("new", "old"), ("other", ""), ("old", ""),
    ]  # fmt: skip
    first, changed_batch, unmeasured = overview.series[0].topologies
    assert first.change is not None
    assert round(first.change, 3) == 0.1
    assert (changed_batch.previous, changed_batch.change) == (None, None)
    assert (unmeasured.topology, unmeasured.change) == ("2n1g", None)


def test_an_older_series_is_compared_with_but_not_listed() -> None:
    documents = {"old": a_series(a_topology("1n1g", 1, 100.0)), "new": a_series(a_topology("1n1g", 1, 90.0))}
    (series,) = listed(documents, since=T0 + 1).series
    assert (series.run, series.previous, series.topologies[0].previous) == ("new", "old", 100.0)


def test_a_series_may_lack_speeds() -> None:
    stored = {"topology": "1n1g", "batch_size_per_device": 4, "run": "r", "status": "pass", "reason": ""}
    document = ScalingDocument.load(
        "r", {"precision": "fp32", "repeats": 1, "rule": "printed", "skip": 0, "take": 1, "topologies": [stored]}
    )
    (row,) = listed({"r": document}).series[0].topologies
    assert (row.median_speed, row.status) == (None, Status.PASS)


def test_csv_has_a_row_per_topology() -> None:
    overview = listed(
        {"r": a_series(a_topology("1n1g", 1, 100.0), a_topology("4n8g", 0, None, reason="no nodes"))}
    )
    rows = list(csv.DictReader(io.StringIO(csv_of(overview))))
    assert [(row["series"], row["topology"], row["median_speed"], row["reason"]) for row in rows] == [
        ("r", "1n1g", "100.0", ""), ("r", "4n8g", "", "no nodes"),
    ]  # fmt: skip

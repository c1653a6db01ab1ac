"""The chart of a scaling chain."""

from tests.unit.report.overview.test_scaling import a_series, a_topology, listed

from tipcflow_pages.charts.scaling import scaling_chart


def test_measured_linear_and_previous_are_drawn() -> None:
    old = a_series(a_topology("1n1g", 1, 100.0), a_topology("1n2g", 2, 150.0))
    new = a_series(a_topology("1n1g", 1, 100.0), a_topology("1n2g", 2, 190.0), a_topology("2n1g", 2, 160.0))
    newest, first = listed({"old": old, "new": new}).series
    chart = scaling_chart(newest)
    assert chart is not None
    assert [chart.count(f'class="series-{number}"') for number in range(3)] == [1, 1, 1]
    assert "previous series" in chart
    single = scaling_chart(first)
    assert single is not None
    assert 'class="series-1"' not in single
    assert "previous series" not in single


def test_single_topology_has_no_chart() -> None:
    (series,) = listed({"r": a_series(a_topology("1n1g", 1, 100.0), a_topology("1n2g", 2, None))}).series
    assert scaling_chart(series) is None

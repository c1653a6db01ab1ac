"""`tipcflow scaling --plot`: what is drawn, and when no image is written."""

import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.stories import a_run
from tests.unit.cli.scaling.test_history import put
from tests.unit.report.overview.test_scaling import a_series, a_topology

from tipcflow.cli.scaling.panels import Panel, Point, fastest, panel_of_series, panels_of_rows
from tipcflow.execute.overview.scaling import series_of_run
from tipcflow.parse.scaling.scaling import Speed, Topology, scaled
from tipcflow.store import Store

SEED = Path(__file__).parents[3] / "golden" / "parse" / "plsc_speeds.txt"
B = ("--batch-size-per-device", "128")
Command = Callable[..., Any]


def a_speed(topology: str, speed: float, *, repeat: int = 1, precision: str = "fp32") -> Speed:
    nodes, gpus = map(int, topology.removesuffix("g").split("n"))
    where = Topology(nodes=nodes, gpus=gpus)
    return Speed(model="r50", precision=precision, topology=where, repeat=repeat, speed=speed)


def panels(*speeds: Speed, **more: Any) -> list[Panel]:
    return panels_of_rows(scaled(speeds, 4), speeds, **more)


@pytest.mark.slow
def test_image_is_written_and_named_in_a_note(tipcflow: Command, tmp_path: Path) -> None:
    file = tmp_path / "seed.png"
    result = tipcflow("scaling", str(SEED), *B, "--plot", str(file))
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[-1] == f"note: plot written to {file}"
    content = file.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert struct.unpack(">II", content[16:24]) == (1200, 720)


def test_svg_contains_title_axes_values_and_lines(tipcflow: Command, tmp_path: Path) -> None:
    import matplotlib as mpl

    file, earlier = tmp_path / "seed.svg", tmp_path / "earlier.txt"
    earlier.write_text(SEED.read_text().replace("2545.3", "2400.0"))
    with mpl.rc_context({"svg.fonttype": "none"}):
        result = tipcflow("scaling", str(SEED), *B, "--plot", str(file), "--previous", str(earlier), "--json")
    assert result.code == 0
    text = file.read_text()
    for words in (
        "r50, fp32, batch size 128 per device", "samples/s of all devices", "devices on all nodes",
        "linear from 1n1g", "previous", "measured, median and range of 5 repeats", "11,085", "87 %", "4n8g",
    ):  # fmt: skip
        assert words in text, words


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("seed.pdf", "--plot: unknown image format; found '{}'; expected a file name that ends with .png or .svg"),
        ("seed", "--plot: unknown image format"),
        ("none/seed.png", "--plot: is in a folder that does not exist"),
        ("folder.png", "--plot: is a folder"),
    ],
)
@pytest.mark.parametrize("command", [("table", str(SEED), *B), ("list",), ("run", "p.txt", "-s", "x", "-c", "y")])
def test_invalid_file_is_refused_before_other_input(
    tipcflow: Command, tmp_path: Path, command: tuple[str, ...], file: str, message: str
) -> None:
    (tmp_path / "folder.png").mkdir()
    result = tipcflow("scaling", *command, "--plot", str(tmp_path / file))
    assert (result.code, result.out) == (2, "")
    (line,) = result.err.splitlines()
    assert message.format(tmp_path / file) in line


def test_missing_matplotlib_names_the_extra(
    tipcflow: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = tipcflow("scaling", str(SEED), *B, "--plot", str(tmp_path / "a.png"))
    assert (result.code, result.out) == (2, "")
    assert "tipcflow scaling --plot requires the extra 'plot': pip install 'tipcflow[plot]'" in result.err


def test_previous_without_a_plot_is_refused(tipcflow: Command) -> None:
    result = tipcflow("scaling", str(SEED), *B, "--previous", str(SEED))
    assert (result.code, result.out) == (2, "")
    assert "--previous: is for plots only" in result.err


def test_results_without_a_speed_make_no_image(tipcflow: Command, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("logs/1n1g/r50_b128_fp32_1.log {1: 0.0}\n")
    file = tmp_path / "a.png"
    result = tipcflow("scaling", str(tmp_path / "empty"), *B, "--plot", str(file))
    assert "note: no plot was written: no topology has a speed" in result.out
    assert not file.exists()


def test_list_draws_the_newest_series(tipcflow: Command, database: Path, tmp_path: Path) -> None:
    put(database)
    file = tmp_path / "a.png"
    out = tipcflow("scaling", "list", "--plot", str(file)).out
    assert out.splitlines()[-1] == f"note: plot written to {file}: the newest of 2 series"
    assert file.stat().st_size > 1000
    none = tipcflow("scaling", "list", "--chain", "nothing", "--plot", str(tmp_path / "b.png")).out
    assert none.splitlines()[-1] == "note: no plot was written: no topology has a speed"


def test_line_has_the_fastest_topology_of_each_number() -> None:
    points = [Point("1n2g", 2, 17.0), Point("2n1g", 2, 12.0), Point("1n1g", 1, 10.0)]
    assert [point.topology for point in fastest(points)] == ["1n1g", "1n2g"]


def test_panel_has_repeats_precision_and_earlier_rows() -> None:
    now = [a_speed("1n1g", 10.0), a_speed("1n1g", 12.0, repeat=2), a_speed("1n2g", 19.0)]
    (panel,) = panels(*now, before=scaled([a_speed("1n2g", 18.0)], 4))
    assert panel.title == "r50, fp32, batch size 4 per device"
    assert panel.points[0].repeats == (10.0, 12.0)
    assert panel.previous == (Point("1n2g", 2, 18.0, None, (18.0,)),)
    two = panels(a_speed("1n1g", 10.0), a_speed("1n1g", 20.0, precision="amp"))
    assert [panel.title.partition(",")[0] for panel in two] == ["r50_amp", "r50_fp32"]


def test_batch_of_all_devices_is_named_in_the_title() -> None:
    rows = scaled([a_speed("1n1g", 10.0), a_speed("1n2g", 19.0)], 4)
    halved = [row.model_copy(update={"batch_size_per_device": 8 // row.devices}) for row in rows]
    (panel,) = panels_of_rows(halved, precision="fp32")
    assert panel.title == "r50, fp32, batch size 8 of all devices"


def test_stored_series_is_drawn_with_the_previous_one(database: Path) -> None:
    old = a_series(a_topology("1n1g", 1, 100.0))
    new = a_series(a_topology("1n1g", 1, 110.0, efficiency=1.0), a_topology("2n1g", 2, None))
    with Store.open(f"sqlite:///{database}") as store:
        now = store.now()
        for place, (name, document) in enumerate({"old": old, "new": new}.items()):
            store.runs.create(a_run(name, created_at=now - 1000 + place))
            store.documents.put(name, document)
        series = series_of_run(store, "new")
        assert series_of_run(store, "nothing") is None
    assert series is not None
    (panel,) = panel_of_series(series)
    assert panel.title == f"{a_run().chain}, fp32, batch size 4 per device"
    assert panel.subtitle.startswith(f"{a_run().framework} on {a_run().cluster}, ")
    assert panel.points == (Point("1n1g", 1, 110.0, 1.0),)
    assert (panel.previous, panel.previous_label) == ((Point("1n1g", 1, 100.0),), "previous, run old")

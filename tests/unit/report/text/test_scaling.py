from tipcflow.parse.scaling.scaling import Scaled
from tipcflow.report.text.scaling import COLUMNS, scaling_cells


def test_a_topology_without_a_base_has_no_speedup() -> None:
    known = Scaled(
        model="m", topology="2n8g", devices=16, batch_size_per_device=4, average_speed=99.5, median_speed=100.0,
        speedup=14.4, efficiency=0.9, repeats=5, speeds={1: 100.0},
    )  # fmt: skip
    assert len(COLUMNS) == len(scaling_cells(known))
    assert scaling_cells(known) == ("2n8g", "16", "5", "99.50", "100.00", "14.40", "90.0 %")
    unknown = known.model_copy(update={"speedup": None, "efficiency": None})
    assert scaling_cells(unknown)[-2:] == ("-", "-")

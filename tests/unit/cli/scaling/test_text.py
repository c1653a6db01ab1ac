"""The dictionary and the table that DLPerf prints, from its own lines."""

from pathlib import Path

import pytest

from tipcflow.cli.scaling.text import seed_dictionary, seed_table
from tipcflow.parse.scaling.printed_speeds import PrintedSpeeds
from tipcflow.parse.scaling.scaling import Scaled, Speed, Topology, scaled

LINES = Path(__file__).parents[3] / "golden" / "parse" / "plsc_speeds.txt"
DICTIONARY = """{'r50': {'1n1g': {'average_speed': 397.98,
                  'batch_size_per_device': 128,
                  'median_speed': 397.78,
                  'speedup': 1.0},
         '1n4g': {'average_speed': 1541.03,
                  'batch_size_per_device': 128,
                  'median_speed': 1539.66,
                  'speedup': 3.87},
         '1n8g': {'average_speed': 2548.18,
                  'batch_size_per_device': 128,
                  'median_speed': 2545.3,
                  'speedup': 6.4},
         '2n8g': {'average_speed': 5956.61,
                  'batch_size_per_device': 128,
                  'median_speed': 5953.84,
                  'speedup': 14.97},
         '4n8g': {'average_speed': 11086.97,
                  'batch_size_per_device': 128,
                  'median_speed': 11084.53,
                  'speedup': 27.87}}}"""
TABLE = """| node_num | gpu_num | samples/s | speedup |
| --- | --- | --- | --- |
| 1 | 1 | 397.78 | 1 |
| 1 | 4 | 1539.66 | 3.87 |
| 1 | 8 | 2545.3 | 6.4 |
| 2 | 16 | 5953.84 | 14.97 |
| 4 | 32 | 11084.53 | 27.87 |"""


@pytest.fixture(scope="module")
def rows() -> list[Scaled]:
    results = PrintedSpeeds()
    for number, line in enumerate(LINES.read_text().splitlines()):
        results.line(number, line)
    return scaled(results.speeds, 128)


def test_dictionary_equals_the_published_one(rows: list[Scaled]) -> None:
    assert seed_dictionary(rows) == DICTIONARY


def test_table_equals_the_published_one(rows: list[Scaled]) -> None:
    assert seed_table(rows) == TABLE


def test_without_one_device_the_smallest_topology_is_the_base() -> None:
    speeds = [
        Speed(model="m", topology=Topology(nodes=nodes, gpus=2), repeat=repeat, speed=speed)
        for nodes, several in ((1, (100.0, 110.0, 90.0)), (2, (150.0, 160.0, 140.0)))
        for repeat, speed in enumerate(several, start=1)
    ]
    assert [row.speedup for row in scaled(speeds, 4)] == [None, None]
    rows = scaled(speeds, 4, from_smallest=True)
    assert [(row.topology, row.speedup, row.efficiency) for row in rows] == [
        ("1n2g", 1.0, 1.0),
        ("2n2g", 1.5, 0.75),
    ]

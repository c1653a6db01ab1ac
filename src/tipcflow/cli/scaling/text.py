"""The table and the JSON document of `tipcflow scaling`, and the dictionary and table of DLPerf."""

import pprint
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tipcflow.cli.output.narrow import fitting
from tipcflow.report.text.markdown_text import table as markdown_table
from tipcflow.report.text.scaling import COLUMNS, scaling_cells

if TYPE_CHECKING:
    from tipcflow.parse.scaling.scaling import Scaled

SCHEMA_VERSION = 1


def document(table: "list[Scaled]", rule: str, batch: int, notes: list[str], errors: list[str]) -> dict[str, Any]:
    """The JSON document (docs/reference/formats.md)."""
    models: dict[str, dict[str, Any]] = {}
    for row in table:
        models.setdefault(row.model, {})[row.topology] = row.model_dump(exclude={"model", "topology"})
    return {
        "schema_version": SCHEMA_VERSION,
        "rule": rule,
        "batch_size_per_device": batch,
        "models": models,
        "notes": notes,
        "errors": errors,
    }


def records(table: "list[Scaled]") -> list[dict[str, Any]]:
    """Records for --csv, one per topology, with the speeds of the repeats as a list."""
    return [{**row.model_dump(), "speeds": list(row.speeds.values())} for row in table]


def page(table: "list[Scaled]", width: int | None) -> list[str]:
    """The text table."""
    if not table:
        return []
    headers = ("MODEL", *map(str.upper, COLUMNS))
    rows = [(row.model, *scaling_cells(row)) for row in table]
    return fitting(headers, rows, width=width, spare=("AVERAGE", "REPEATS", "DEVICES"))


def seed_dictionary(rows: "Sequence[Scaled]") -> str:
    """Return the dictionary as DLPerf's script prints it: model -> topology -> speeds."""
    names = {"average_speed", "batch_size_per_device", "median_speed", "speedup"}
    models: dict[str, dict[str, Any]] = {}
    for row in rows:
        models.setdefault(row.model, {})[row.topology] = row.model_dump(include=names)
    return pprint.pformat(models)


def seed_table(rows: "Sequence[Scaled]") -> str:
    """Return DLPerf's table of medians; `gpu_num` counts the devices of all nodes."""
    head = ("node_num", "gpu_num", "samples/s", "speedup")
    return markdown_table(
        head,
        (
            (row.topology.partition("n")[0], str(row.devices), _plain(row.median_speed), _plain(row.speedup))
            for row in rows
            if row.speedup is not None
        ),
    )


def _plain(number: float) -> str:
    """Return a number with up to two decimals, without zeros at the end."""
    return f"{number:.2f}".rstrip("0").rstrip(".")

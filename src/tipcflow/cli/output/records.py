"""Records as CSV: `--csv` of the commands that list something."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from tipcflow.cli.output.output import print_csv
from tipcflow.domain import ConfigError

AsCsv = Annotated[bool, typer.Option("--csv", help="Print CSV, one row per entry.")]


def refuse_both(*, as_json: bool, as_csv: bool) -> None:
    """Refuse two formats at once.

    Raises:
        ConfigError: both are requested.
    """
    if as_json and as_csv:
        raise ConfigError("give either --json or --csv", key="--csv")


def print_records(records: Sequence[Mapping[str, Any]], *, names: Sequence[str] = ()) -> None:
    """Print a header and one row per record.

    A list of plain values is joined with "; ", other nested values are compact JSON, a missing value is empty.

    Args:
        names: the columns; default: the fields of all records, in the order of their first use.
    """
    columns = list(names) or list(dict.fromkeys(name for record in records for name in record))
    print_csv(columns, [[_cell(record.get(name)) for name in columns] for record in records])


def _cell(value: Any) -> object:
    if isinstance(value, (list, tuple)) and not any(isinstance(item, (list, tuple, dict)) for item in value):
        return "; ".join(str(item) for item in value)
    if isinstance(value, (list, tuple, dict)):
        return json.dumps(value, separators=(",", ":"), default=str)
    return "" if value is None else value

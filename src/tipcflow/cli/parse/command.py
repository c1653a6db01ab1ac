"""`tipcflow parse FILE…`: parses logs without a run, a database or a node."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tipcflow.cli.output.narrow import fitting
from tipcflow.cli.output.output import echo_lines, print_json, terminal_width
from tipcflow.cli.output.records import refuse_both
from tipcflow.cli.parse.inputs import pieces_of, rank_of
from tipcflow.domain import ConfigError, Status, exit_code

if TYPE_CHECKING:
    from tipcflow.parse.bulk.series import SeriesKey, SeriesSummary
    from tipcflow.parse.bulk.summary import LogSummary

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class ParsedFile:
    """The result of one file: a summary, or the error."""

    file: str
    account: "LogSummary | None" = None
    error: str = ""


def parse(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Log files, plain or gzipped; - is stdin.")],
    log_format: Annotated[
        str, typer.Option("--format", help="auto, a format of training logs, autolog, launch or results.")
    ] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print one row per sample.")] = False,
) -> None:
    """Summarize logs: recognized lines, metrics, AutoLog reports, the container that a launcher reports."""
    from tipcflow.cli.parse.csv_output import print_csv
    from tipcflow.cli.parse.format import named_format

    refuse_both(as_json=as_json, as_csv=as_csv)
    chosen = named_format(log_format)
    if as_csv:
        errors = print_csv(files, chosen)
    else:
        parsed = [_parse_file(file, chosen) for file in files]
        errors = [result.error for result in parsed if result.error]
        if as_json:
            print_json({"schema_version": SCHEMA_VERSION, "files": [document(result) for result in parsed]})
        else:
            echo_lines([line for result in parsed if result.account for line in page(result, terminal_width())])
    for error in errors:
        typer.echo(f"{Status.CONFIG_ERROR.value}: {error}", err=True)
    if errors:
        raise typer.Exit(exit_code(Status.CONFIG_ERROR))


def _parse_file(file: str, log_format: str) -> ParsedFile:
    from tipcflow.parse.bulk.summary import summarize_log

    try:
        return ParsedFile(file, summarize_log(pieces_of(file), log_format, rank=rank_of(file)))
    except ConfigError as error:
        return ParsedFile(file, error=str(error))


def document(result: ParsedFile) -> dict[str, Any]:
    """The file's entry in the JSON document (docs/reference/formats.md)."""
    account = result.account
    if account is None:
        return {"file": result.file, "error": result.error}
    return {
        "file": result.file,
        "format": account.format,
        "bytes": account.bytes,
        "lines": account.lines,
        "blank": account.blank,
        "recognised": dict(account.kinds.most_common()),
        "unrecognised": account.unrecognised,
        "metrics": [_metric(key, summary) for key, summary in account.series.items()],
        "autolog": [block.model_dump(mode="json") for block in account.autolog],
        "results": [line.model_dump(mode="json") for line in account.results],
        "ranks": [rank.model_dump(mode="json") for rank in account.ranks],
        "launch": account.launch and account.launch.model_dump(mode="json"),
        "engine": account.engine,
    }


def _metric(key: "SeriesKey", summary: "SeriesSummary") -> dict[str, Any]:
    some = summary.finite > 0
    return {
        "metric": key.metric,
        "phase": key.phase.value,
        "rank": key.rank,
        "unit": key.unit,
        "n": summary.n,
        "first": summary.first,
        "last": summary.last,
        "mean": summary.mean if some else None,
        "median": summary.median if some else None,
        "median_exact": summary.exact,
        "min": summary.min if some else None,
        "max": summary.max if some else None,
        "not_finite": summary.n - summary.finite,
    }


def page(result: ParsedFile, width: int | None) -> list[str]:
    """The file's section of the text output."""
    account = result.account
    if account is None:
        return []
    kinds = ", ".join(f"{number} {kind}" for kind, number in account.kinds.most_common()) or "none"
    lines = [
        f"{result.file}: {account.lines} lines, recognized: {kinds}; "
        f"not recognized: {account.unrecognised}; empty: {account.blank}"
    ]
    if account.series:
        headers = ("METRIC", "PHASE", "RANK", "N", "FIRST", "LAST", "MEAN", "MEDIAN", "MIN", "MAX", "UNIT")
        rows = [_row(key, summary) for key, summary in account.series.items()]
        lines += fitting(headers, rows, width=width, spare=("MIN", "MAX", "LAST", "FIRST", "MEAN"))
    for block in account.autolog:
        cut = "" if block.complete else ", cut off"
        model = block.fields.get("model_name", "a model without a name")
        lines.append(f"AutoLog report of {model} at byte {block.offset}: {len(block.fields)} fields{cut}")
    if account.launch:
        failure = account.launch
        lines.append(
            f"launcher: rank {failure.rank} ended with {failure.code} (log {failure.log or 'not named'}), "
            f"exit code {failure.exit_code}"
        )
    bad = sum(not line.ok for line in account.results)
    if account.results:
        lines.append(f"results: {len(account.results) - bad} successful, {bad} reported as failed by the script")
    return [*lines, ""]


def _row(key: "SeriesKey", summary: "SeriesSummary") -> tuple[str, ...]:
    middle = (summary.mean, summary.median, summary.min, summary.max) if summary.finite else (math.nan,) * 4
    shown = [_number(value) for value in (summary.first, summary.last, *middle)]
    if not summary.exact:
        shown[3] = f"~{shown[3]}"
    rank = "" if key.rank < 0 else str(key.rank)
    return (key.metric, key.phase.value, rank, str(summary.n), *shown, key.unit)


def _number(value: float) -> str:
    return f"{value:.6g}"

"""The typed content of a params file of an unsupported kind, printed before the error."""

import typer

from tipcflow.cli.output.output import columns, echo_lines, print_json, terminal_width
from tipcflow.params.kinds import FileKind, Value


def print_refused(kind: FileKind, file: str, *, as_json: bool) -> None:
    """Print every line of the file with its value and inferred type."""
    if as_json:
        entries = [{"line": e.line, "key": e.key, "value": e.typed, "type": _type(e.typed)} for e in kind.entries]
        print_json(
            {"file": file, "kind": kind.kind, "title": kind.title, "refused": kind.refused, "entries": entries}
        )
        return
    typer.echo(f"{file}: {kind.what}, {len(kind.entries)} lines; it is not run")
    rows = [(str(each.line), each.key, _type(each.typed), each.value) for each in kind.entries]
    echo_lines(columns(("LINE", "KEY", "TYPE", "VALUE"), rows, width=terminal_width()))


def _type(value: Value) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, tuple):
        return "list of " + " or ".join(dict.fromkeys(_type(item) for item in value))
    return {bool: "flag", int: "number", float: "number", str: "text"}[type(value)]

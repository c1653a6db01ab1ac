"""Log lines of the CLI as JSON, one object a line, with the names of fields that Airflow's JSON logs have."""

import json
import sys
from contextlib import suppress
from datetime import UTC, datetime

from tipcflow.domain import ConfigError, Status


def has_json_lines() -> bool:
    """Whether the CLI prints JSON (`TIPCFLOW_JSON_LOGS`); False for an invalid value, which commands report."""
    try:
        from tipcflow.config.settings import settings
    except ModuleNotFoundError:
        # Settings are part of the extras; without them, the CLI only talks to Airflow.
        return False
    with suppress(ConfigError):
        return settings().json_logs
    return False


def print_json_line(
    text: str,
    *,
    level: str = "info",
    at: float | None = None,
    run: str = "",
    step: str = "",
    node: str = "",
    status: Status | None = None,
) -> None:
    """Print a line to stderr.

    Args:
        at: seconds since the epoch; None for now.
        run, step, node, status: fields of the line; empty ones are omitted.

    Raises:
        OSError: stderr cannot be written.
    """
    moment = datetime.now(UTC) if at is None else datetime.fromtimestamp(at, UTC)
    line = {
        "timestamp": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": level,
        "event": text,
        "tipcflow_run": run,
        "tipcflow_step": step,
        "tipcflow_node": node,
        "tipcflow_status": status.value if status else "",
    }
    fields = {name: value for name, value in line.items() if value or name == "event"}
    print(json.dumps(fields), file=sys.stderr, flush=True)  # noqa: T201

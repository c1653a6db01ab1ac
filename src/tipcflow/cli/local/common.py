"""What starting and stopping of local services share."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tipcflow.domain import ConfigError, Status, exit_code

if TYPE_CHECKING:
    from devcluster.keep.record import Record

FORCE = "Stop even if runs are in progress; they end as infra_failure or failed."


def note(line: str) -> None:
    """Print progress to stderr."""
    typer.echo(line, err=True)


@contextmanager
def interruptible(what: str) -> Iterator[None]:
    """Turn Ctrl-C and SIGTERM into exit code 3 after the clean-up.

    Args:
        what: message about the clean-up.
    """
    from devcluster.signals import Interrupted, interrupt_guard

    try:
        with interrupt_guard.installed():
            yield
    except Interrupted as stop:
        note(f"{stop}; {what}")
        raise typer.Exit(exit_code(Status.CANCELLED)) from None


def refuse_second(record: "Record | None", *, what: str, down: str) -> None:
    """Refuse a start while the service runs.

    Raises:
        ConfigError: the service is running.
    """
    from tipcflow.domain.numbers.units import utc

    if record is not None and record.condition in ("starting", "running"):
        raise ConfigError(
            f"{what} already running",
            found=f"process {record.pid}, since {utc(record.since)} UTC",
            hint=f"`tipcflow status` shows details, `{down}` ends it",
        )


def refuse_in_use(runs: Sequence[str], *, what: str) -> None:
    """Refuse a stop while runs are in progress.

    Raises:
        ConfigError: there are such runs.
    """
    if runs:
        raise ConfigError(
            f"{what} in use",
            found=", ".join(runs),
            expected="no run in progress",
            hint="wait for the end of the runs, stop them, or use --force",
        )


def runs_on(addresses: Sequence[str], database_url: str) -> list[str]:
    """Runs with a valid lease on one of these addresses; empty if there is no database yet."""
    from tipcflow.store import Store

    if database_url.startswith("sqlite:///") and not Path(database_url.removeprefix("sqlite:///")).exists():
        return []
    with Store.open(database_url) as store:
        now = store.now()
        return sorted({lease.run for lease in store.leases.all() if lease.node in addresses and lease.live(now)})

"""Flat list of the commands that a suite's script runs, for comparison with recorded runs."""

from tipcflow.domain import Command
from tipcflow.params import Dialect
from tipcflow.plan.bash.script import script_calls
from tipcflow.plan.source.files import FileView, NoFiles


def plan_commands(
    text: str, *, file: str, dialect: Dialect, mode: str, files: FileView | None = None
) -> list[Command]:
    """Return every command of the script's run over a params file, in order.

    The file is not validated: for misplaced lines the result is what the script would run, possibly nothing.

    Raises:
        ConfigError: the file's lists exceed a bound (`tipcflow.params.limits`).
    """
    calls = script_calls(text, file=file, dialect=dialect.for_mode(mode), mode=mode, files=files or NoFiles())
    return [call.as_command() for call in calls]

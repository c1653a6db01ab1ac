"""How a job ended, and its command."""

import shlex

from tipcflow.domain import Command, EndReason, ExitRecord


def job_end(record: ExitRecord | None) -> str:
    """How a failed job ended; '' for a job that succeeded or has no record."""
    if record is None or record.ok:
        return ""
    missing = [output.path for output in record.outputs if not (output.exists and output.fresh)]
    parts = (
        _how(record),
        record.message,
        _oom(record),
        f"not written: {', '.join(missing)}" if missing else "",
        f"{record.killed} left-over processes ended" if record.killed else "",
    )
    return ", ".join(filter(None, parts))


def _oom(record: ExitRecord) -> str:
    if not record.oom:
        return ""
    return "out of memory" if record.oom_named else "out-of-memory kill on the machine"


def _how(record: ExitRecord) -> str:
    if record.reason is EndReason.EXITED:
        return f"exit code {record.exit_code}"
    if record.reason is EndReason.SIGNALED:
        return f"signal {record.signal}"
    return record.reason.value.replace("_", " ")


def command_line(command: Command) -> str:
    """A command to paste into a shell, in the suite's root."""
    place = "" if command.cwd in ("", ".") else f"cd {shlex.quote(command.cwd)} && "
    if command.container:  # the command refers to its folders by variables that only a job has
        place = 'export TIPCFLOW_ROOT="$PWD" TIPCFLOW_BIN="${PWD%/*}/bin" TIPCFLOW_CONTAINER=again; '
    settings = "".join(f"{key}={shlex.quote(value)} " for key, value in sorted(command.env.items()))
    return f"{place}{settings}{command.shell}"

"""Entry of `tools/gpu_day.sh`.

Usage: python -m devcluster.gpu_day.main [--wheels FOLDER_OR_URL] [--offline] [--torch-python PATH]
    [--output FOLDER] [--dry-run]
"""

import sys
import time
from collections.abc import Sequence

from devcluster.gpu_day.execution import Outcome, execute, in_order, too_few_gpus
from devcluster.gpu_day.machine import describe_gpus, read_machine
from devcluster.gpu_day.options import Options, read_options
from devcluster.gpu_day.parts import make_parts, shown
from devcluster.gpu_day.report import make_document, worst, write_report
from devcluster.signals import interrupt_guard
from tipcflow.domain import ConfigError, InfraError, TipcflowError, exit_code

# GPUs of a dry run on a machine without GPUs: those of the largest topology on one node.
_ASSUMED_GPUS = 8


def main(words: Sequence[str] | None = None) -> int:
    """Run the checks, or print their commands. Returns: the exit code of the worst part."""
    try:
        options = read_options(sys.argv[1:] if words is None else words)
        return _dry_run(options) if options.dry_run else _run(options)
    except TipcflowError as error:
        _note(f"{error.status.value}: {error}")
        return exit_code(error.status)


def _dry_run(options: Options) -> int:
    try:
        gpus = len(read_machine(str(options.output.parent), uv=options.creates)["gpus"])
    except InfraError as error:
        _note(f"note: {error.message}; commands for {_ASSUMED_GPUS} GPUs")
        gpus = _ASSUMED_GPUS
    print(f"export OUT={options.output}\nmkdir -p $OUT")  # noqa: T201
    for part in in_order(make_parts(options, gpus)):
        print(f"\n# {part.id}: {part.title}")  # noqa: T201
        if missing := part.missing or too_few_gpus(part, gpus):
            print(f"# not_run: {missing}")  # noqa: T201
            continue
        for command in part.commands:
            print(shown(command, options.output))  # noqa: T201
    return 0


def _run(options: Options) -> int:
    _make_folder(options)
    machine = read_machine(str(options.output), uv=options.creates)
    started, since = time.time(), time.monotonic()
    _note(f"{describe_gpus(machine)}, driver {machine['driver']}; report in {options.output}")

    def save(outcomes: list[Outcome]) -> None:
        write_report(make_document(options, machine, outcomes, started, time.monotonic() - since), options.output)

    with interrupt_guard.installed():
        outcomes = execute(
            make_parts(options, len(machine["gpus"])),
            gpus=len(machine["gpus"]),
            output=options.output,
            report=_note,
            save=save,
        )
    status = worst(outcomes)
    print(options.output / "report.md")  # noqa: T201
    print(status.value)  # noqa: T201
    return exit_code(status)


def _make_folder(options: Options) -> None:
    if (options.output / "report.json").exists():
        raise ConfigError(
            "contains an earlier report",
            key="--output",
            found=str(options.output),
            expected="a new or empty folder",
        )
    try:
        options.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"cannot be created: {error.strerror}", key="--output", found=str(options.output)
        ) from error


def _note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())

"""`tipcflow logs RUN [STEP]`: logs of the nodes, as fetched to this machine."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

import typer

from tipcflow.cli.output.output import columns, echo_lines, print_json, terminal_width
from tipcflow.domain import ConfigError, Frozen, InfraError
from tipcflow.domain.errors import did_you_mean
from tipcflow.domain.masking import LineMask
from tipcflow.domain.numbers.units import size
from tipcflow.domain.run.names import StepId
from tipcflow.execute.collect.log_archive import open_kept, plain_name

if TYPE_CHECKING:
    from tipcflow.execute.collect.run_files import KeptFile, RunFiles

_PIECE = 1 << 20
# Preserves bytes that are not text, including those of a character split between two pieces.
_BYTES = ("utf-8", "surrogateescape")


# Which outputs of the job were opened, as the runner records it.
_NOT_LOGS = ("opened.txt",)


class LogFile(Frozen):
    """One fetched file. `step` is the step's id, or the folder's name if no step of the plan has it.

    `bytes` is the size on disk; `path` ends in `.gz` if the file was compressed, `name` never does. `object` is
    the file's name in the object store if it is not on this machine, otherwise ''.
    """

    step: str
    node: str
    name: str
    path: Path
    bytes: int
    object: str = ""

    @property
    def is_log(self) -> bool:
        """Whether the file is a log; records of the job and artefacts such as weights are listed, not printed."""
        name = plain_name(self.path.name)
        if name in _NOT_LOGS:
            return False
        return Path(name).suffix in (".log", ".txt", ".out", ".err") or name.startswith("workerlog.")


def logs(
    run: Annotated[str, typer.Argument(help="Run ID or a prefix of it, or latest.")],
    step: Annotated[str | None, typer.Argument(help="Step, e.g. train. Default: list the files.")] = None,
    node: Annotated[str | None, typer.Option("--node", help="Only this node.")] = None,
    leg: Annotated[str | None, typer.Option("--leg", help="Only this leg of an inference step.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="List the files as JSON.")] = False,
) -> None:
    """Print the logs of a step, or list the log files of a run."""
    from tipcflow.config.settings import settings
    from tipcflow.execute.collect.run_files import RunFiles
    from tipcflow.store import Store

    with Store.open() as store:
        run_id = store.runs.find(run).id
        plan = store.plans.get_or_none(run_id)
        kept = RunFiles(store, run_id, settings().home)
        stored = [kept_file.path for kept_file in kept.elsewhere]
    ids = [planned.id for planned in plan.steps] if plan else []
    folder = settings().runs_dir / run_id
    step_id = None if step is None else _step(step, ids)
    log_files = files(
        folder, ids, step=step_id, node=node, leg=leg, stored={path: kept.kept[path] for path in stored}
    )
    if not log_files:
        about = "".join(
            f" {word} {name}" for word, name in (("step", step_id), ("node", node), ("leg", leg)) if name
        )
        raise ConfigError(
            f"run {run_id} has no logs of{about}" if about else f"run {run_id} has no logs",
            hint=f"`tipcflow logs {run_id}` lists the files in {folder}",
        )
    if as_json:
        print_json([file.model_dump(mode="json") for file in log_files])
    elif step_id is None:
        typer.echo(f"{kept.url}" if stored else f"{folder}", err=True)
        echo_lines(listing(log_files, width=terminal_width()))
    else:
        _print([_here(kept, file) for file in log_files if file.is_log])
        others = [file for file in log_files if not file.is_log]
        if others:
            typer.echo(f"not printed: {_counted(others)}; `tipcflow logs {run_id}` lists all files", err=True)


def files(
    folder: Path,
    ids: Sequence[str],
    *,
    step: str | None,
    node: str | None,
    leg: str | None,
    stored: Mapping[str, "KeptFile"] = MappingProxyType({}),
) -> list[LogFile]:
    """The fetched files, by step in the order of the plan, node and name.

    Args:
        ids: of the plan's steps.
        stored: path in the run's folder -> file that is only in the object store.
    """
    from tipcflow.remote.runner.files import log_name, safe_name

    wanted_step = None if step is None else safe_name(step)
    planned = {safe_name(step_id): step_id for step_id in ids}
    order = {step_id: place for place, step_id in enumerate(ids)}
    log_files = []
    here = (path for path in folder.glob("*/*/**/*") if path.is_file())
    for path in sorted([*here, *(folder / name for name in stored)]):
        parts = path.relative_to(folder).parts
        kept_file = stored.get("/".join(parts))
        name = plain_name("/".join(parts[2:]))
        if wanted_step not in (None, parts[0]) or node not in (None, parts[1]):
            continue
        if path.name.startswith("."):  # leftover of an interrupted fetch
            continue
        if leg is not None and name != log_name(leg):
            continue
        log_files.append(
            LogFile(
                step=planned.get(parts[0], parts[0]),
                node=parts[1],
                name=name,
                path=path,
                bytes=kept_file.bytes if kept_file else path.stat().st_size,
                object=kept_file.object if kept_file else "",
            )
        )
    return sorted(log_files, key=lambda file: order.get(file.step, len(order)))


def listing(log_files: list[LogFile], *, width: int | None) -> list[str]:
    """The table of files."""
    rows = [(size(file.bytes), file.step, file.node, file.name) for file in log_files]
    return columns(("SIZE", "STEP", "NODE", "FILE"), rows, width=width)


def _step(wanted: str, ids: list[str]) -> str:
    """Resolve a step by its id, its name without the variant, or a prefix of either.

    Raises:
        ConfigError: no step or several steps match; lists the steps.
    """
    if wanted in ids:
        return wanted
    short = [step_id for step_id in ids if StepId.parse(step_id).name == wanted]
    matching = short or [
        step_id for step_id in ids if step_id.startswith(wanted) or StepId.parse(step_id).name.startswith(wanted)
    ]
    if len(matching) == 1:
        return matching[0]
    raise ConfigError(
        f"{len(matching)} steps match this prefix" if matching else "no such step",
        key="step",
        found=wanted,
        expected="one of " + ", ".join(matching or ids) if ids else "no step: the run has no plan",
        hint="" if matching else did_you_mean(wanted, [*(StepId.parse(step_id).name for step_id in ids), *ids]),
    )


def _counted(others: Sequence[LogFile]) -> str:
    """The number of files, and the path of a single one."""
    total = size(sum(file.bytes for file in others))
    return f"{others[0].path} ({total})" if len(others) == 1 else f"{len(others)} other files ({total})"


def _here(kept: "RunFiles", log_file: LogFile) -> LogFile:
    """The file with a path that can be opened.

    Raises:
        InfraError: the object store cannot be reached, or does not have it any more.
    """
    if not log_file.object:
        return log_file
    path = kept.open_path(str(log_file.path.relative_to(kept.folder)))
    if path is None:
        raise InfraError(f"{log_file.object} is no longer in the object store")
    return log_file.model_copy(update={"path": path})


def _print(log_files: list[LogFile]) -> None:
    """Print files verbatim except for masked secrets; with a header line per file when there are several."""
    out = sys.stdout.buffer
    for log_file in log_files:
        if len(log_files) > 1:
            out.write(f"==> {log_file.step}/{log_file.node}/{log_file.name} <==\n".encode())
        with open_kept(log_file.path) as file:
            last = b"\n"
            lines = LineMask()
            while piece := file.read(_PIECE):
                out.write(lines.feed(piece.decode(*_BYTES)).encode(*_BYTES))
                last = piece[-1:]
            out.write(lines.flush().encode(*_BYTES))
        if last != b"\n":
            out.write(b"\n")
    out.flush()

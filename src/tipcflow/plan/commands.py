"""The flat list of commands that a suite's script would run, to be compared with records of real runs."""

from tipcflow.domain import Command
from tipcflow.params import Dialect, read_params
from tipcflow.params.layout import TITLE
from tipcflow.params.specs import BlocksSpec
from tipcflow.plan.bash import BashScript
from tipcflow.plan.files import FileView, NoFiles


def plan_commands(
    text: str, *, file: str, dialect: Dialect, mode: str, files: FileView | None = None
) -> list[Command]:
    """Every command of the script's run over a params file, in order, whatever state the file is in.

    Nothing is checked: a file whose lines are shifted gives what the script would run, possibly nothing.
    """
    dialect = dialect.for_mode(mode)
    if dialect.blocks is not None:
        return _block_commands(text, dialect.blocks, file=file, dialect=dialect, files=files or NoFiles())
    params = read_params(text, file=file, dialect=dialect)
    script = BashScript(params, dialect, mode=mode, files=files or NoFiles())
    return _as_commands(script)


def _block_commands(
    text: str, blocks: BlocksSpec, *, file: str, dialect: Dialect, files: FileView
) -> list[Command]:
    """Every block trained as it is, then with the static trainer, on one GPU."""
    lines = text.split("\n")
    starts = [place for place, line in enumerate(lines) if TITLE.fullmatch(line)]
    found: list[Command] = []
    for start in starts:
        block = lines[start : start + blocks.lines]
        if len(block) < blocks.lines:
            continue
        block[3] = "gpu_list:0"
        for line, extra in blocks.append.items():
            block[line - 1] += extra
        for trainer in (block[14], f"trainer:{blocks.static}"):
            block[14] = trainer
            params = read_params("\n".join(block), file=file, dialect=dialect)
            found += _as_commands(BashScript(params, dialect, mode=blocks.mode, files=files))
        found += [Command(text=command) for command in blocks.commands for _ in range(2)]
    return found


def _as_commands(script: BashScript) -> list[Command]:
    return [
        Command(
            text=call.text,
            cwd=call.cwd,
            env={} if call.cuda is None else {"CUDA_VISIBLE_DEVICES": call.cuda},
            log=call.log,
        )
        for call in script.calls()
    ]

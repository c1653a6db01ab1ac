"""The flat list of commands that a suite's script would run, to be compared with records of real runs."""

from tipcflow.domain import Command
from tipcflow.params import Dialect, read_params
from tipcflow.plan.bash import BashScript
from tipcflow.plan.files import FileView, NoFiles


def plan_commands(
    text: str, *, file: str, dialect: Dialect, mode: str, files: FileView | None = None
) -> list[Command]:
    """Every command of the script's run over a params file, in order, whatever state the file is in.

    Nothing is checked: a file whose lines are shifted gives what the script would run, possibly nothing.
    """
    dialect = dialect.for_mode(mode)
    params = read_params(text, file=file, dialect=dialect)
    script = BashScript(params, dialect, mode=mode, files=files or NoFiles())
    return [
        Command(
            text=call.text,
            cwd=call.cwd,
            env={} if call.cuda is None else {"CUDA_VISIBLE_DEVICES": call.cuda},
            log=call.log,
        )
        for call in script.calls()
    ]

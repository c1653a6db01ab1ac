"""Commands that any of a suite's scripts runs over its params file."""

from collections.abc import Iterator
from dataclasses import replace

from tipcflow.domain import StepKind
from tipcflow.params import Dialect, read_params
from tipcflow.params.layout import TITLE
from tipcflow.params.specs import BlocksSpec
from tipcflow.plan.bash.script_loops import BashScript
from tipcflow.plan.source.call import Call
from tipcflow.plan.source.eval_words import runs_python
from tipcflow.plan.source.files import FileView

# 1-based lines of a block that the script replaces by number.
_TRAINER, _SCRIPT = 15, 16


def script_calls(text: str, *, file: str, dialect: Dialect, mode: str, files: FileView) -> Iterator[Call]:
    """Yield the commands of the script's run, in order, without validation; `dialect` is the mode's dialect."""
    if dialect.blocks is not None:
        yield from _block_calls(text, dialect.blocks, file=file, dialect=dialect, files=files)
        return
    params = read_params(text, file=file, dialect=dialect)
    yield from BashScript(params, dialect, mode=mode, files=files).calls()


def _block_calls(text: str, blocks: BlocksSpec, *, file: str, dialect: Dialect, files: FileView) -> Iterator[Call]:
    """Yield, per block, a dynamic and a static training on one GPU, then the search for their losses."""
    lines = text.split("\n")
    for start in (place for place, line in enumerate(lines) if TITLE.fullmatch(line)):
        block = lines[start : start + blocks.lines]
        if len(block) < blocks.lines:
            continue
        name = block[0].strip("= ")
        if blocks.setup and runs_python(block[-1]):
            yield Call(kind=StepKind.PREPARE, text=block[-1], label=name)
        block[3] = "gpu_list:0"
        block[_SCRIPT - 1] += blocks.append
        for static in (False, True):
            if static and blocks.trainer:
                block[_TRAINER - 1] = f"trainer:{blocks.trainer}"
            elif static:
                block[_SCRIPT - 1] += blocks.static
            params = read_params("\n".join(block), file=file, dialect=dialect)
            for call in BashScript(params, dialect, mode=blocks.mode, files=files).calls():
                yield replace(call, label=block_variant(name, call.variant, static=static), expects=())
        for command in blocks.commands:
            yield from (Call(kind=StepKind.EVAL, text=command, label=name) for _ in range(2))


def block_variant(block: str, variant: str, *, static: bool) -> str:
    """Return the name of one of a block's two trainings."""
    return f"{block}_{'static' if static else 'dynamic'}_{variant}"

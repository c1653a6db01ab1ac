"""Params files with several blocks of lines, each parsed as a separate file."""

from tipcflow.domain import ConfigError, Frozen
from tipcflow.params.dialect import Dialect
from tipcflow.params.file import ParamsFile
from tipcflow.params.layout import TITLE
from tipcflow.params.lines import read_lines
from tipcflow.params.parse import parse_lines


class Block(Frozen):
    """One block: its name, and its lines with their line numbers in the file."""

    name: str
    params: ParamsFile


def split_blocks(text: str, *, file: str, dialect: Dialect) -> list[Block]:
    """Return the blocks of a file, each from its title to the next title, limited to a block's length.

    Raises:
        ConfigError: the file has no block, two blocks have the same name, or a line does not match its position.
    """
    lines, blocks = read_lines(text), dialect.blocks
    starts = [line.index for line in lines if TITLE.fullmatch(line.text)]
    if blocks is None or not starts or starts[0] != 0:
        raise ConfigError(
            "the file has no blocks",
            file=file,
            line=1,
            key="title",
            found=lines[0].text if lines else "nothing",
            expected="=====name===== and the lines of a training below it",
        )
    by_name: dict[str, Block] = {}
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        name = lines[start].text.strip("= ")
        if name in by_name:
            raise ConfigError(
                "duplicate name of a block",
                file=file,
                line=lines[start].number,
                key="title",
                found=name,
                expected="a name for every block",
            )
        block_lines = lines[start : min(end, start + blocks.lines)]
        params = parse_lines(text, block_lines, file=file, dialect=dialect)
        by_name[name] = Block(name=name, params=params)
    return list(by_name.values())

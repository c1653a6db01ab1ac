"""Streams the samples of a log that arrives in pieces, in constant memory."""

from collections.abc import Iterable, Iterator

from tipcflow.parse.chunks import chunks
from tipcflow.parse.sample import Sample
from tipcflow.parse.text import last_state
from tipcflow.parse.training.kinds import readers_of
from tipcflow.parse.training.scan import Scan
from tipcflow.parse.training.side import AuxiliaryLine


def samples_of(pieces: Iterable[bytes], log_format: str) -> Iterator[tuple[str, Sample]]:
    """Yield (format, sample) of a log; AutoLog reports and benchmark objects come last."""
    formats, sides = readers_of(log_format)
    scan, side = Scan(formats), AuxiliaryLine(sides)
    for offset, raw in numbered_lines(pieces):
        line, spotted = scan.line(last_state(raw).decode("utf-8", "replace"))
        if spotted:
            for sample in scan.samples_in(line, spotted, offset=offset):
                yield spotted.form, sample
        elif line and side.may_want(line):
            side.line(offset, line)
    for block in side.autolog:
        for sample in block.samples:
            yield "autolog", sample
    for sample in side.benchmark:
        yield "benchmark", sample


def numbered_lines(pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield (byte offset, line) of a file that arrives in pieces; a line that is longer than any format allows is
    truncated."""
    for offset, chunk in chunks(pieces):
        for line in chunk.removesuffix(b"\n").split(b"\n"):
            yield offset, line
            offset += len(line) + 1

"""Parser of one leg's log: AutoLog reports, engine settings, predictions, reporter."""

import re
from collections.abc import Iterable, Iterator, Sequence

from tipcflow.config.formats import PredictionRule
from tipcflow.domain import Frozen
from tipcflow.domain.keys import PredictionKey
from tipcflow.parse.reports.autolog import AutologBlock, AutologReader, real_autolog_spoke
from tipcflow.parse.reports.engine import parse_engine
from tipcflow.parse.reports.predictions import read_predictions
from tipcflow.parse.sample import Sample
from tipcflow.parse.text import lines_of, strip_ansi

# `reporter: auto_log 1.2.0` or `reporter: tipcflow-sample`
_REPORTER = re.compile(r"\s*reporter: (\S+(?: \S+)?)\s*$")


class InferenceLog(Frozen):
    """The contents of a leg's log.

    Attributes:
        autolog: the fields of the last report, as printed; empty if there is none.
        blocks: all reports (a system of several models prints one each).
        engine: the engine settings that the process reports, as printed; empty if not reported.
        predictions: the class scores and results.
        reporter: `auto_log <version>`, `tipcflow-sample`, `auto_log` if only the package's own mark is
            present, `unknown` for a report without a signature, '' without a report.
    """

    autolog: dict[str, str] = {}
    blocks: tuple[AutologBlock, ...] = ()
    engine: dict[str, str] = {}
    predictions: dict[PredictionKey, tuple[float, ...]] = {}
    reporter: str = ""

    @property
    def samples(self) -> tuple[Sample, ...]:
        """Return the values of all reports, in the order of the log."""
        return tuple(sample for block in self.blocks for sample in block.samples)


def parse_inference(text: str | bytes) -> InferenceLog:
    """Parse a leg's log; an empty log gives an empty result."""
    return read_inference(lines_of(text))


def read_inference(lines: Iterable[tuple[int, str]], rules: Sequence[PredictionRule] = ()) -> InferenceLog:
    """`parse_inference` for a log that arrives line by line, with byte offsets.

    Args:
        rules: the suite's own lines of predictions.
    """
    reader = AutologReader()
    engine: dict[str, str] = {}
    signed, spoke = "", False

    def seen() -> Iterator[tuple[int, str]]:
        """Pass every line on, after reading engine, reporter and AutoLog from it: the log is read once."""
        nonlocal engine, signed, spoke
        for offset, raw in lines:
            line = strip_ansi(raw)
            reader.line(offset, line)
            if "engine:" in line:
                engine = parse_engine(line) or engine
            if "reporter:" in line and (match := _REPORTER.match(line)):
                signed = match[1]
            spoke = spoke or ("autolog.py" in line and real_autolog_spoke(line))
            yield offset, raw

    predictions = read_predictions(seen(), rules)
    blocks = reader.blocks
    return InferenceLog(
        autolog=blocks[-1].fields if blocks else {},
        blocks=blocks,
        engine=engine,
        predictions=predictions,
        reporter=(signed or ("auto_log" if spoke else "unknown")) if blocks else "",
    )

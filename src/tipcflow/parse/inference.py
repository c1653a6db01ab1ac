"""One leg's log -> everything that it says: AutoLog reports, engine settings, predictions, who reported."""

import re

from tipcflow.domain import Frozen
from tipcflow.parse.autolog import AutologBlock, parse_autolog, real_autolog_spoke
from tipcflow.parse.engine import parse_engine
from tipcflow.parse.predictions import parse_predictions
from tipcflow.parse.sample import Sample
from tipcflow.parse.text import strip_ansi

# `reporter: auto_log 1.2.0` or `reporter: tipcflow-sample`
_REPORTER = re.compile(r"^\s*reporter: (\S+(?: \S+)?)\s*$", re.MULTILINE)


class InferenceLog(Frozen):
    """What a leg's log says.

    Attributes:
        autolog: the fields of the last report, as printed; empty when there is none.
        blocks: all reports (a system of several models prints one each).
        engine: the settings that the process says it really uses, as printed; empty when it does not say.
        predictions: image name -> class scores.
        reporter: `auto_log <version>`, `tipcflow-sample`, `auto_log` where only the package's own mark is there,
            `unknown` for a report that nobody signed, '' without a report.
    """

    autolog: dict[str, str] = {}
    blocks: tuple[AutologBlock, ...] = ()
    engine: dict[str, str] = {}
    predictions: dict[str, tuple[float, ...]] = {}
    reporter: str = ""

    @property
    def samples(self) -> tuple[Sample, ...]:
        """The numbers of all reports, in the order of the log."""
        return tuple(sample for block in self.blocks for sample in block.samples)


def parse_inference(text: str) -> InferenceLog:
    """Everything that a leg's log says; an empty log gives an empty answer."""
    blocks = parse_autolog(text)
    return InferenceLog(
        autolog=blocks[-1].fields if blocks else {},
        blocks=blocks,
        engine=parse_engine(text),
        predictions=parse_predictions(text),
        reporter=_reporter(text) if blocks else "",
    )


def _reporter(text: str) -> str:
    signed = _REPORTER.findall(strip_ansi(text))
    if signed:
        return str(signed[-1])
    return "auto_log" if real_autolog_spoke(text) else "unknown"

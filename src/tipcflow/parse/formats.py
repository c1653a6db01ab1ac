"""The formats of training logs by name, as a suite's `log_format` gives them; one module per format."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tipcflow.domain import ConfigError
from tipcflow.parse import models
from tipcflow.parse.sample import Sample

Reader = Callable[[int, str], Iterator[Sample]]


@dataclass(frozen=True)
class LineFormat:
    """How one family of suites prints its numbers.

    Attributes:
        recognises: whether a line is a training line, for the live display.
        training, evaluation: (byte offset, line without colours) -> samples, none for other lines.
    """

    recognises: Callable[[str], bool]
    training: Reader
    evaluation: Reader


FORMATS = {
    "models": LineFormat(models.is_training_line, models.training_samples, models.eval_samples),
}


def line_format(name: str) -> LineFormat:
    """The format of that name.

    Raises:
        ConfigError: there is none.
    """
    if name not in FORMATS:
        raise ConfigError(
            "is no format of training logs", key="log_format", found=name, expected=f"one of {', '.join(FORMATS)}"
        )
    return FORMATS[name]

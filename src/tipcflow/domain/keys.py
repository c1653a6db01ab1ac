"""Keys of values in a run: which metric, loss curve, evidence or golden a value belongs to.

Keys are values in memory. Their text is used only where a key is stored or printed: `str(key)` writes it, `parse`
reads it. The parts are joined by `|`, and a `|` within a part is written as `%7C`; types with another text say so.
"""

import re
from collections.abc import Container
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

_REPEAT = re.compile(r"_repeat_\d+(?=/|$)")
# Metrics of a rank, of all processes together, and of an evaluation (`numbers_of`).
RANK, ALL, EVAL = ".rank", ".all", "eval."
# Training speed of the slowest rank over the whole training (`numbers_of`).
SLOWEST = ".slowest"
# Only these two are escapes, so that texts that were stored without escapes keep their meaning.
_ESCAPE = re.compile(r"%(?=7C|25)")
_ESCAPED = re.compile(r"%(7C|25)")
# End of the text of a `PredictionKey`.
_RESULT = re.compile(r": result (0|[1-9][0-9]{0,8})\Z")


def without_repeat(step: str) -> str:
    """Return a step's id without the repeat: `norm_train_repeat_2/train` is a repeat of `norm_train/train`."""
    return _REPEAT.sub("", step)


def plain_metric(name: str) -> str:
    """Return the metric of a name in `numbers_of`: `peak_rss` for `peak_rss.rank3`."""
    return name.removesuffix(ALL).removesuffix(SLOWEST).partition(RANK)[0].removeprefix(EVAL)


@dataclass(frozen=True, order=True, slots=True)
class TextKey:
    """A key with a text form."""

    def __str__(self) -> str:
        return "|".join(_escaped(str(getattr(self, part.name))) for part in fields(self))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` wrote, or what was stored before `|` was escaped.

        Raises:
            ValueError: the text has too few parts.
        """
        names = [part.name for part in fields(cls)]
        parts = text.split("|", len(names) - 1)
        if len(parts) < len(names):
            raise ValueError(f"{text!r} is not a key {'|'.join(names)!r}")
        return cls(*(_ESCAPED.sub(_unescaped, part) for part in parts))

    @classmethod
    def _validated(cls, value: Any) -> Self:
        return value if isinstance(value, cls) else cls.parse(str(value))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        as_text = core_schema.to_string_ser_schema()
        return core_schema.no_info_plain_validator_function(cls._validated, serialization=as_text)


@dataclass(frozen=True, order=True, slots=True)
class LegKey(TextKey):
    """A leg of a step, or a step without legs. The text is `step/leg`, or the step's id.

    Attributes:
        leg: '' for the step itself.
    """

    step: str
    leg: str = ""

    def __str__(self) -> str:
        return f"{self.step}/{self.leg}" if self.leg else self.step

    @property
    def part(self) -> "PartKey":
        """The key as it is stored without a plan."""
        return PartKey(str(self))

    @classmethod
    def parse(cls, text: str, steps: Container[str] = ()) -> Self:
        """Read what `str` wrote.

        Args:
            steps: known ids of steps. Ids of steps may contain `/` and ids of legs do not, so that the text of an
                unknown step is read as that of a leg.
        """
        step, _, leg = text.rpartition("/")
        return cls(text) if text in steps or not step else cls(step, leg)


@dataclass(frozen=True, order=True, slots=True)
class PartKey(TextKey):
    """A step or a leg as it is stored without a plan: the text of its `LegKey`. Only a plan distinguishes the two,
    because ids of steps may contain `/`."""

    text: str

    def __str__(self) -> str:
        return self.text

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` wrote.

        Raises:
            ValueError: the text is empty.
        """
        if not text:
            raise ValueError("'' is not a key 'step' or 'step/leg'")
        return cls(text)

    def within(self, steps: Container[str]) -> LegKey:
        """Return the step or leg.

        Args:
            steps: ids of the plan's steps.
        """
        return LegKey.parse(self.text, steps)


@dataclass(frozen=True, order=True, slots=True)
class _NumberedKey(TextKey):
    """A step with a number, the second part of the key.

    Attributes:
        FORM: the text, for errors.
        PATTERN: the text; its groups are the parts.
    """

    FORM: ClassVar[str]
    PATTERN: ClassVar[re.Pattern[str]]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` wrote.

        Raises:
            ValueError: the text does not have the key's form.
        """
        match = cls.PATTERN.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a key {cls.FORM!r}")
        step, number, *others = match.groups()
        return cls(*(step, int(number), *others))


@dataclass(frozen=True, order=True, slots=True)
class AttemptKey(_NumberedKey):
    """An attempt of a step. The text is `step~attempt`.

    Attributes:
        attempt: from 1 on; 0 for a step that was not started.
    """

    FORM: ClassVar = "step~attempt"
    PATTERN: ClassVar = re.compile(r"(.+)~([0-9]+)", re.DOTALL)
    step: str
    attempt: int

    def __str__(self) -> str:
        return f"{self.step}~{self.attempt}"


@dataclass(frozen=True, order=True, slots=True)
class MemberKey(_NumberedKey):
    """A node's part of an attempt. The text is `step~attempt/node`.

    Attributes:
        node: name of the node, without `/`.
    """

    FORM: ClassVar = "step~attempt/node"
    PATTERN: ClassVar = re.compile(r"(.+)~([0-9]+)/([^/]+)", re.DOTALL)
    step: str
    attempt: int
    node: str

    def __str__(self) -> str:
        return f"{self.step}~{self.attempt}/{self.node}"


@dataclass(frozen=True, order=True, slots=True)
class WaitKey(_NumberedKey):
    """A step's wait for its slots. The text is `step generation`.

    Attributes:
        generation: number of times that the step was cleared before.
    """

    FORM: ClassVar = "step generation"
    PATTERN: ClassVar = re.compile(r"(.+) ([0-9]+)", re.DOTALL)
    step: str
    generation: int

    def __str__(self) -> str:
        return f"{self.step} {self.generation}"


@dataclass(frozen=True, order=True, slots=True)
class MetricKey(TextKey):
    """A metric of a step or of one of its legs.

    Attributes:
        step: id of the step; without the repeat in `numbers_of`.
        leg: '' outside inference.
        metric: name, in comparisons with `eval.`, `.rank<N>`, `.all` or `.slowest` (`numbers_of`).
    """

    step: str
    leg: str
    metric: str

    @property
    def plain_metric(self) -> str:
        """Name of the metric without rank and evaluation."""
        return plain_metric(self.metric)

    @property
    def rank(self) -> int | None:
        """The rank that the value belongs to; None for a value of the whole step."""
        _, separator, rank = self.metric.rpartition(RANK)
        return int(rank) if separator else None

    def of(self, metric: str) -> "MetricKey":
        """Return the key of another metric of the same step and leg."""
        return replace(self, metric=metric)


@dataclass(frozen=True, order=True, slots=True)
class CurveKey:
    """A loss curve within a training.

    Attributes:
        metric: '' for a loss that is called `loss`.
    """

    node: str
    rank: int
    metric: str = ""


@dataclass(frozen=True, order=True, slots=True)
class LossKey:
    """A loss curve of a run."""

    step: str
    curve: CurveKey


@dataclass(frozen=True, order=True, slots=True)
class EvidenceKey(TextKey):
    """A piece of evidence.

    Attributes:
        kind: a value of `Evidence`.
        step: id of the step.
        leg: '' outside inference.
        what: name of the metric or check, number of the rank, or ''.
    """

    kind: str
    step: str
    leg: str = ""
    what: str = ""

    def without_repeat(self) -> "EvidenceKey":
        """Return the key of the same evidence in any repeat of the step."""
        return replace(self, step=without_repeat(self.step))


@dataclass(frozen=True, order=True, slots=True)
class PredictionKey(TextKey):
    """A prediction: the class scores of an image, or one of the results that were printed for an input.

    The text is the image's name, or `input: result N`.

    Attributes:
        source: name of the image or the input.
        result: number, from 1 on, of the result (other than class scores, such as a box); 0 for class scores.
    """

    source: str
    result: int = 0

    @property
    def is_result(self) -> bool:
        """Whether the prediction is a result, not class scores."""
        return self.result > 0

    def __str__(self) -> str:
        # The name of an image that looks like a result gets an ending, too.
        is_plain = not self.result and _RESULT.search(self.source) is None
        return self.source if is_plain else f"{self.source}: result {self.result}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str` wrote; every text is a key."""
        match = _RESULT.search(text)
        return cls(text[: match.start()], int(match[1])) if match else cls(text)


@dataclass(frozen=True, order=True, slots=True)
class GoldenKey(TextKey):
    """The golden of an inference step in one precision."""

    step: str
    precision: str


def _escaped(part: str) -> str:
    return _ESCAPE.sub("%25", part).replace("|", "%7C")


def _unescaped(match: re.Match[str]) -> str:
    return "|" if match[1] == "7C" else "%"

"""Custom formats of training logs (configs/formats/<name>.yaml), and lines with predictions."""

import json
import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from tipcflow.config.base import ConfigModel
from tipcflow.config.loader import invalid_value, load_yaml
from tipcflow.domain.errors import ConfigError
from tipcflow.domain.numbers.units import limit

# Maximum time per line, seconds; a slower pattern is rejected because of excessive backtracking.
LINE_LIMIT_S = 0.1
# Names of the formats that `tipcflow.parse` has; `auto` tries all of them.
BUILT_IN = ("auto", "clas", "seg", "det", "rec", "video", "ocr", "models", "gan", "pytorch", "dlperf", "nlp")
_PLACES = frozenset({"epoch", "iteration", "rank"})
_PREDICTION_GROUPS = (frozenset({"image", "class"}), frozenset({"image", "class", "score"}))
_RESULT_GROUPS = (frozenset({"value"}), frozenset({"image", "value"}), frozenset({"image"}))
# A number in the text of the group `value`, not a part of a word such as float32.
NUMBER = r"(?<![\w.])[-+]?(?:nan|inf|(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?!\w)"
# Adversarial text for patterns with nested or adjacent repetitions.
_PUMPED = 500
_CHOKING = tuple(piece * 2000 + "!" for piece in ("a", "1", " ", "a1", "1 ", "a ", "1.", "a=1, "))


class FormatRule(ConfigModel):
    """One kind of line.

    Attributes:
        pattern: regular expression with named groups, searched in each line. The groups `epoch`, `iteration` and
            `rank` have these meanings; every other group is a metric.
        phase: phase of the metrics.
        sample: a line that the pattern must match, with all of its mandatory groups.
        pairs: also keep every numeric `name: value` pair after the match.
        units: metric -> unit.
    """

    pattern: str = Field(min_length=1, max_length=2000)
    phase: Literal["train", "eval"] = "train"
    sample: str = Field(min_length=1, max_length=20_000)
    pairs: bool = False
    units: dict[str, str] = {}

    @field_validator("pattern")
    @classmethod
    def _compiles(cls, pattern: str) -> str:
        groups = set(compiled(pattern).groupindex)
        if not groups:
            raise ValueError("has no named group, like (?P<loss>[0-9.]+)")
        return pattern

    @model_validator(mode="after")
    def _fits(self) -> "FormatRule":
        groups = set(compiled(self.pattern).groupindex)
        if not groups - _PLACES and not self.pairs:
            raise ValueError("names no metric: give the pattern a group for one, or set pairs: true")
        unknown = sorted(set(self.units) - groups)
        if unknown and not self.pairs:
            raise ValueError(f"units names {unknown[0]!r}, which is not a group of the pattern")
        self._try()
        return self

    def _try(self) -> None:
        match = searched(self.pattern, self.sample)
        if match is None:
            raise ValueError("the pattern does not find its own sample")
        for group, text in match.groupdict().items():
            if text is not None:
                _number(group, text)
        for text in _CHOKING:
            searched(self.pattern, text)
        # Also after every prefix of the sample, to reach later parts of the pattern, and within the sample, to get
        # past its literal words.
        for end, last in enumerate(self.sample[:_PUMPED], 1):
            searched(self.pattern, f"{self.sample[:end]}{last * 2000}\N{NULL}")
            searched(self.pattern, f"{self.sample[:end]}{last * 1000}{self.sample[end:]}\N{NULL}")


class CustomFormat(ConfigModel):
    """`configs/formats/<name>.yaml`: the log lines of a family of suites.

    Attributes:
        rules: tried in order on each line; the first match parses the line.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    description: str = ""
    rules: tuple[FormatRule, ...] = Field(min_length=1)


class PredictionRule(ConfigModel):
    """One kind of line.

    Attributes:
        pattern: regular expression, searched in each line. With the named groups `image` and `class`, and `score`
            if the line has the score with all its digits: the class is the index of the highest score of the
            network's output for this image, without a threshold and not of an average of several outputs. With
            the group `value`, which may occur several times: the numbers of a result such as a box. With the
            group `image` alone: the input to which the results of the next lines belong, unless they name one.
        sample: a line that the pattern must match.
        source: the file of the suite that prints the line.
    """

    pattern: str = Field(min_length=1, max_length=2000)
    sample: str = Field(min_length=1, max_length=2000)
    source: str = ""

    @field_validator("pattern")
    @classmethod
    def _has_groups(cls, pattern: str) -> str:
        groups = set(compiled(pattern).groupindex)
        if groups not in (*_PREDICTION_GROUPS, *_RESULT_GROUPS):
            expected = "image, class and optionally score; or value and optionally image; or image"
            raise ValueError(f"has the named groups {sorted(groups)}; expected {expected}")
        return pattern

    @model_validator(mode="after")
    def _fits(self) -> "PredictionRule":
        match = searched(self.pattern, self.sample)
        if match is None:
            raise ValueError("the pattern does not match its sample")
        groups = match.groupdict()
        if "class" in groups and not (groups["class"].isascii() and groups["class"].isdigit()):
            raise ValueError(f"group 'class' matches {groups['class']!r} in the sample, which is not an integer")
        if "value" in groups and not numbers_in(match.captures("value")):
            raise ValueError(f"group 'value' matches {groups['value']!r} in the sample, which has no number")
        for text in _CHOKING:
            searched(self.pattern, text)
        return self


def numbers_in(texts: Iterable[str]) -> tuple[float, ...]:
    """The numbers in texts, in order."""
    return tuple(float(number) for text in texts for number in re.findall(NUMBER, text))


def compiled(pattern: str) -> Any:
    """The pattern, compiled by an engine with a timeout.

    Raises:
        ValueError: not a regular expression.
    """
    regex: Any = import_module("regex")  # only needed for custom formats; untyped
    try:
        return regex.compile(pattern)
    except regex.error as error:
        raise ValueError(f"is not a valid regular expression: {error}") from error


def searched(pattern: str, text: str) -> Any:
    """The first match of the pattern in the text, or None.

    Raises:
        ValueError: the search takes longer than `LINE_LIMIT_S`.
    """
    try:
        return compiled(pattern).search(text, timeout=LINE_LIMIT_S)
    except TimeoutError:
        raise ValueError(
            f"takes more than {limit(LINE_LIMIT_S)} on one line: repetitions in repetitions, like (a+)+"
        ) from None


def _number(group: str, text: str) -> None:
    try:
        int(text) if group in _PLACES else float(text)
    except ValueError:
        what = "an integer" if group in _PLACES else "a number"
        raise ValueError(f"group {group!r} finds {text!r} in the sample, which is not {what}") from None


def load_format(path: Path) -> CustomFormat:
    """Load a format file.

    Raises:
        ConfigError: the file is invalid; the error has file, line and key.
    """
    form = load_yaml(path, CustomFormat)
    if form.name != path.stem:
        raise ConfigError(
            "is not the name of the file", file=str(path), key="name", found=form.name, expected=path.stem
        )
    return form


def definition(name: str, config_dir: Path) -> str:
    """The definition of a format as JSON; '' if there is no such file.

    The JSON text can replace the name everywhere, so the file is no longer needed.

    Raises:
        ConfigError: the file is invalid.
    """
    path = config_dir / "formats" / f"{name}.yaml"
    if "/" in name or not path.is_file():
        return ""
    return json.dumps(load_format(path).model_dump(mode="json"), sort_keys=True)


def defined(text: str) -> CustomFormat:
    """Parse a definition.

    Raises:
        ConfigError: the text is not a definition.
    """
    try:
        return CustomFormat.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        problem = invalid_value(first, key=".".join(map(str, first["loc"])))
        raise ConfigError(f"is not a definition of a log format: {problem.message}", key="log_format") from error


def own_formats(config_dir: Path) -> list[str]:
    """The names of all custom formats."""
    return sorted(path.stem for path in (config_dir / "formats").glob("*.yaml"))

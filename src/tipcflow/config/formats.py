"""Formats of training logs that a user adds: configs/formats/<name>.yaml."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from tipcflow.config.base import ConfigModel
from tipcflow.config.loader import load_yaml
from tipcflow.domain.errors import ConfigError

# What one line may cost, seconds, before the pattern is taken for one that backtracks without end.
LINE_LIMIT_S = 0.1
_PLACES = frozenset({"epoch", "iteration", "rank"})
# Text that patterns with nested or neighbouring repetitions choke on.
_PUMPED = 500
_CHOKING = tuple(piece * 2000 + "!" for piece in ("a", "1", " ", "a1", "1 ", "a ", "1.", "a=1, "))


class FormatRule(ConfigModel):
    """One kind of line.

    Attributes:
        pattern: a regular expression with named groups, searched for in each line. `epoch`, `iteration` and `rank`
            are those; every other group is a metric of that name.
        phase: what the numbers are of.
        sample: a line that the pattern must find, with all its groups that are not optional.
        pairs: also keep every numeric `name: value` pair that stands behind what the pattern found.
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
            raise ValueError(f"units names {unknown[0]!r}, which is no group of the pattern")
        self._try()
        return self

    def _try(self) -> None:
        found = searched(self.pattern, self.sample)
        if found is None:
            raise ValueError("the pattern does not find its own sample")
        for group, text in found.groupdict().items():
            if text is not None:
                _number(group, text)
        for text in _CHOKING:
            searched(self.pattern, text)
        # The same behind every beginning of the sample, which gets the pattern to its later parts; and within the
        # sample, which gets it past the words that it must find.
        for end, last in enumerate(self.sample[:_PUMPED], 1):
            searched(self.pattern, f"{self.sample[:end]}{last * 2000}\N{NULL}")
            searched(self.pattern, f"{self.sample[:end]}{last * 1000}{self.sample[end:]}\N{NULL}")


class CustomFormat(ConfigModel):
    """`configs/formats/<name>.yaml`: how one family of suites prints its numbers.

    Attributes:
        rules: tried on each line in their order; the first that finds something reads the line.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    description: str = ""
    rules: tuple[FormatRule, ...] = Field(min_length=1)


def compiled(pattern: str) -> Any:
    """The pattern, compiled by an engine that can be given a time limit.

    Raises:
        ValueError: it is no regular expression.
    """
    regex: Any = import_module("regex")  # not needed by those who have no format of their own; it has no types
    try:
        return regex.compile(pattern)
    except regex.error as error:
        raise ValueError(f"is no regular expression: {error}") from error


def searched(pattern: str, text: str) -> Any:
    """The first match of the pattern in the text, or None.

    Raises:
        ValueError: it takes longer than `LINE_LIMIT_S`.
    """
    try:
        return compiled(pattern).search(text, timeout=LINE_LIMIT_S)
    except TimeoutError:
        raise ValueError(
            f"takes more than {LINE_LIMIT_S} s on one line: repetitions in repetitions, like (a+)+"
        ) from None


def _number(group: str, text: str) -> None:
    try:
        int(text) if group in _PLACES else float(text)
    except ValueError:
        what = "an integer" if group in _PLACES else "a number"
        raise ValueError(f"group {group!r} finds {text!r} in the sample, which is not {what}") from None


def load_format(path: Path) -> CustomFormat:
    """A format's file.

    Raises:
        ConfigError: it is wrong; says file, line and key.
    """
    form = load_yaml(path, CustomFormat)
    if form.name != path.stem:
        raise ConfigError(
            "is not the name of the file", file=str(path), key="name", found=form.name, expected=path.stem
        )
    return form


def definition(name: str, config_dir: Path) -> str:
    """The definition of the format of that name, as JSON; '' when there is no such file.

    The text stands for the format wherever its name could: whoever has it needs no file.

    Raises:
        ConfigError: the file is wrong.
    """
    path = config_dir / "formats" / f"{name}.yaml"
    if "/" in name or not path.is_file():
        return ""
    return json.dumps(load_format(path).model_dump(mode="json"), sort_keys=True)


def defined(text: str) -> CustomFormat:
    """The format of a definition.

    Raises:
        ConfigError: the text is no definition.
    """
    try:
        return CustomFormat.model_validate_json(text)
    except ValidationError as error:
        raise ConfigError(
            f"is no definition of a log format: {error.errors()[0]['msg']}", key="log_format"
        ) from error


def own_formats(config_dir: Path) -> list[str]:
    """The names of all formats that a user added."""
    return sorted(path.stem for path in (config_dir / "formats").glob("*.yaml"))

"""Load YAML files into typed models; errors have file, line, key, found and expected value."""

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tipcflow.config.yaml_text.strict import Lines, read_yaml
from tipcflow.domain.errors import ConfigError, InvalidKeyError, did_you_mean, why_unreadable

# Longer messages and keys of a file are cut off.
_LONGEST = 300
# Number of further errors that are shown.
_MORE = 3
# The end of pydantic's path of an invalid key of a mapping.
_KEY = "[key]"
_OF_KEYS = {"literal_error": "unknown key", "string_pattern_mismatch": "invalid name"}
# Messages about a value alone.
_GENERAL = frozenset({"is required", "unknown key", "invalid value", "invalid name"})
# Type of pydantic's error -> expected value; fields in braces are the context of the error.
_EXPECTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "keys with values",
    "float_parsing": "a number",
    "float_type": "a number",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "list_type": "a list",
    "literal_error": "{expected}",
    "mapping_type": "keys with values",
    "model_type": "keys with values",
    "string_too_short": "at least {min_length} character(s)",
    "string_type": "text",
    "too_short": "at least {min_length} item(s)",
    "tuple_type": "a list",
}

# Pattern of a model -> expected value.
_NAME = "letters, digits, '_', '.' and '-', beginning with a letter or digit"
_PATTERNS = {
    r"^/": "an absolute path",
    r"^/.+": "an absolute path",
    r"^(/.+)?$": "an absolute path",
    r"^[A-Za-z0-9][A-Za-z0-9_.-]*$": _NAME,
    r"^[A-Za-z_][A-Za-z0-9_]*$": "letters, digits and '_', not beginning with a digit",
    r"^([0-9a-f]{64})?$": "64 hexadecimal digits in lower case, as printed by sha256sum",
    r"^[^\n\r\x00]*$": "one line of text",
    r"^[^\x00]*$": "text without the character NUL",
    r"^([0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*)?$": "CPU numbers and ranges, such as 0-3,8",
    r"^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+$": "owner/name",
    r"^([01][0-9]|2[0-3]):[0-5][0-9]$": "a time HH:MM",
    r"^[^@\s,]+@[^@\s,]+$": "an email address",
    r"^([^@\s]+@[^@\s]+)?$": "an email address",
    r"^([A-Za-z0-9_.][^\s\x00-\x1f]*)?$": "one word that does not begin with '-'",
    r"^[a-z0-9]+(-[a-z0-9]+)*$": "lower-case letters, digits and single '-'",
}
# How pydantic and Typer word the errors of other types.
_SHOULD_BE = "Input should be "
_NOT_ONE_OF = re.compile(r".* is not one of ('.*')\.", re.DOTALL)

ModelT = TypeVar("ModelT", bound=BaseModel)


def load_yaml(path: Path, model: type[ModelT]) -> ModelT:
    """The file's content as `model`.

    Raises:
        ConfigError: the file is missing, is not YAML, repeats a key, or does not match the model. The error is the
            first problem in the file, with the number of further ones.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"cannot be read: {why_unreadable(error)}", file=str(path), expected="a readable YAML file"
        ) from error
    return parse_yaml(text, model, file=str(path))


def parse_yaml(text: str, model: type[ModelT], *, file: str) -> ModelT:
    """Like `load_yaml`, from text; `file` is the name in errors."""
    data, lines = read_yaml(text, file=file)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise first_error(error, lines, file, model, data) from error


def first_error(
    error: ValidationError, lines: Lines, file: str, model: type[BaseModel], data: Any = None
) -> ConfigError:
    """Return the first problem of a file, with its line and key, and the next ones in short.

    A missing key comes last: a misspelled key, which is unknown, is often the reason.

    Args:
        data: content of the file, for the names of list items.
    """
    found_errors = [_Problem.of(details) for details in error.errors()]
    # An invalid item also makes its list invalid: report only the deepest errors.
    prefixes = {item.loc[:end] for item in found_errors for end in range(len(item.loc))}
    problems = sorted(
        (item for item in found_errors if item.loc not in prefixes),
        key=lambda item: (item.details["type"] == "missing", _line(item.loc, lines), str(item.loc)),
    )
    first, others = problems[0], problems[1:]
    expected, hint = first.expected, ""
    if first.details["type"] == "extra_forbidden":
        known = _known_keys(first.loc, model)
        expected = f"one of {', '.join(known or ['the documented keys'])}"
        hint = did_you_mean(str(first.loc[-1]), known)
    elif first.choices:
        hint = did_you_mean(first.value, first.choices)
    more = "; ".join(f"{item.key}: {item.message}" for item in others[:_MORE])
    more += f"; {len(others) - _MORE} others" if len(others) > _MORE else ""
    return ConfigError(
        f"{first.message[:_LONGEST]}{_item(first, data)}" + (f" ({len(others)} more: {more})" if others else ""),
        file=file,
        line=_line(first.loc, lines),
        key=first.key,
        found=first.value,
        expected=expected,
        hint=hint,
    )


@dataclass(frozen=True)
class _Problem:
    """One validation error: path of its key, what is wrong with it, and the details of pydantic."""

    loc: tuple[str | int, ...]
    message: str
    value: str
    expected: str
    details: ErrorDetails

    @classmethod
    def of(cls, details: ErrorDetails) -> "_Problem":
        """Return the error in the words of the errors of configuration files."""
        loc = details["loc"]
        message, expected = message_and_expected(details)
        cause = details.get("ctx", {}).get("error")
        if isinstance(cause, InvalidKeyError):
            return cls((*loc, *cause.key), cause.what, cause.found, cause.expected, details)
        if loc and loc[-1] == _KEY:  # the key itself is invalid, not its value
            loc, message = loc[:-1], _OF_KEYS.get(details["type"], message)
        # An error about several keys has the whole mapping as input, which is not helpful.
        whole = isinstance(details["input"], dict) and details["type"] == "value_error"
        value = "" if details["type"] == "missing" or whole else str(details["input"])[:120]
        return cls(loc, message, value, expected, details)

    @property
    def key(self) -> str:
        """The path as text."""
        return ".".join(str(part) for part in self.loc)[:_LONGEST]

    @property
    def choices(self) -> list[str]:
        """The valid words, if there are only these."""
        return re.findall(r"'([^']*)'", self.expected) if self.details["type"] == "literal_error" else []


def _item(problem: _Problem, data: Any) -> str:
    """Return the name of the list item that has the key, as the end of a message: ` in node 'a'`."""
    for part, index in itertools.pairwise(problem.loc[:-1]):
        try:
            data = data[part]
            name = data[index]["name"] if isinstance(index, int) else None
        except (KeyError, IndexError, TypeError):
            return ""
        if isinstance(name, str):
            item = f"{str(part).removesuffix('s')} {name[:_LONGEST]!r}"
            return f" in {item}" if problem.message in _GENERAL else f" ({item})"
    return ""


def invalid_value(error: ErrorDetails, *, key: str) -> ConfigError:
    """Return the error about the value of a key, option or query parameter."""
    message, expected = message_and_expected(error)
    value = "" if error["type"] == "missing" else str(error["input"])[:120]
    return ConfigError(message, key=key, found=value, expected=expected)


def message_and_expected(error: ErrorDetails) -> tuple[str, str]:
    """Return (message, expected value) of a validation error.

    Returns:
        The expected value is '' if the message states it, as a validator of tipcflow does.
    """
    if error["type"] == "missing":
        return "is required", ""
    if error["type"] == "extra_forbidden":
        return "unknown key", ""
    if error["type"] == "string_pattern_mismatch":
        pattern = error.get("ctx", {}).get("pattern", "")
        return "invalid value", _PATTERNS.get(pattern, f"text that matches {pattern}")
    if expected := _EXPECTED.get(error["type"]):
        return "invalid value", expected.format_map(_plain(error.get("ctx", {})))
    # Remove the prefix that pydantic adds to messages of validators.
    message = error["msg"].removeprefix("Value error, ")
    if choices := _NOT_ONE_OF.fullmatch(message):
        return "invalid value", f"one of {choices[1].replace(chr(39), '')}"
    if message.startswith(_SHOULD_BE):
        return "invalid value", message.removeprefix(_SHOULD_BE)
    # A message of tipcflow may begin with a name, such as PATH.
    return message if error["type"] == "value_error" else message[:1].lower() + message[1:], ""


def _plain(context: Mapping[str, Any]) -> dict[str, Any]:
    """Bounds as users write them: pydantic has 0.0 for the bound 0 of a float."""
    return {
        name: int(value) if isinstance(value, float) and value.is_integer() else value
        for name, value in context.items()
    }


def _line(loc: tuple[str | int, ...], lines: Lines) -> int:
    """The line of the deepest part of `loc` that is in the file."""
    for end in range(len(loc), -1, -1):
        if loc[:end] in lines:
            return lines[loc[:end]]
    return 0


def _known_keys(loc: tuple[str | int, ...], model: type[BaseModel]) -> list[str]:
    """Valid names at the position of the unknown key `loc[-1]`; none if no model defines them."""
    current: Any = model
    for part in loc[:-1]:
        if isinstance(part, int):
            continue
        field = current.model_fields.get(part) if hasattr(current, "model_fields") else None
        current = _model_in(field.annotation) if field else None
    return sorted(current.model_fields) if hasattr(current, "model_fields") else []


def _model_in(annotation: Any) -> Any:
    if hasattr(annotation, "model_fields"):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        model = _model_in(argument)
        if model is not None:
            return model
    return None

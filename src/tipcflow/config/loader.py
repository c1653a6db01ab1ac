"""Load YAML files into typed models; errors have file, line, key, found and expected value."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tipcflow.config.yaml_text.strict import Lines, read_yaml
from tipcflow.domain.errors import ConfigError, why_unreadable

# Longer messages and keys of a file are cut off.
_LONGEST = 300
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
        raise first_error(error, lines, file, model) from error


def first_error(error: ValidationError, lines: Lines, file: str, model: type[BaseModel]) -> ConfigError:
    """Return the first problem of a file, with its line and key, and the number of further ones."""

    def position(details: ErrorDetails) -> tuple[int, str]:
        return _line(details["loc"], lines), str(details["loc"])

    found_errors = error.errors()
    # An invalid item also makes its list invalid: report only the deepest errors.
    prefixes = {item["loc"][:end] for item in found_errors for end in range(len(item["loc"]))}
    details = sorted((item for item in found_errors if item["loc"] not in prefixes), key=position)
    first = details[0]
    more = f" (and {len(details) - 1} more after it)" if len(details) > 1 else ""
    key = ".".join(str(part) for part in first["loc"])[:_LONGEST]
    # An error about several keys has the whole mapping as input, which is not helpful.
    whole = isinstance(first["input"], dict) and first["type"] == "value_error"
    value = "" if first["type"] == "missing" or whole else str(first["input"])[:120]
    message, expected = message_and_expected(first)
    if first["type"] == "extra_forbidden":
        expected = f"one of {', '.join(_known_keys(first['loc'], model))}"
    return ConfigError(
        message[:_LONGEST] + more,
        file=file,
        line=_line(first["loc"], lines),
        key=key,
        found=value,
        expected=expected,
    )


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
    if expected := _EXPECTED.get(error["type"]):
        return "invalid value", expected.format_map(_plain(error.get("ctx", {})))
    # Remove the prefix that pydantic adds to messages of validators.
    message = error["msg"].removeprefix("Value error, ")
    if choices := _NOT_ONE_OF.fullmatch(message):
        return "invalid value", f"one of {choices[1].replace(chr(39), '')}"
    if message.startswith(_SHOULD_BE):
        return "invalid value", message.removeprefix(_SHOULD_BE)
    return message[:1].lower() + message[1:], ""


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
    """Valid names at the position of the unknown key `loc[-1]`, if the models define them."""
    current: Any = model
    for part in loc[:-1]:
        if isinstance(part, int):
            continue
        field = current.model_fields.get(part) if hasattr(current, "model_fields") else None
        current = _model_in(field.annotation) if field else None
    return sorted(current.model_fields) if hasattr(current, "model_fields") else ["the documented keys"]


def _model_in(annotation: Any) -> Any:
    if hasattr(annotation, "model_fields"):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        model = _model_in(argument)
        if model is not None:
            return model
    return None

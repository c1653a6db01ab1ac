"""Formats that a user wrote (configs/formats/<name>.yaml)."""

from tipcflow.domain import ConfigError
from tipcflow.parse.line_format import LineFormat


def is_definition(name: str) -> bool:
    """Whether a suite's `log_format` is not a name but a whole definition, as JSON."""
    return name.startswith("{")


def custom_format(text: str) -> LineFormat:
    """The format of a definition."""
    raise ConfigError("formats of one's own cannot be read yet", key="log_format", found=text[:60])

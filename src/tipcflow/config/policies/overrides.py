"""Exceptions of a policy for suites or models."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from pydantic import Field, ValidationError

from tipcflow.config.base import ConfigModel
from tipcflow.config.loader import message_and_expected
from tipcflow.domain.errors import InvalidKeyError

# The end of pydantic's path of an invalid key of a mapping.
_KEY = "[key]"


class Override(ConfigModel):
    """Exception for suites or models.

    Attributes:
        suite, model: patterns with `*` and `?`; '' matches all.
        because: the reason, for readers of the policy.
        set: policy keys that differ, at any depth (`{metrics: {batch_cost: {floor: 0.1}}}`).
    """

    suite: str = ""
    model: str = ""
    because: str = Field(min_length=1)
    set: dict[str, Any] = Field(min_length=1)

    def about(self, suite: str, model: str) -> bool:
        """Whether the override applies to this model of this suite."""
        return fnmatchcase(suite, self.suite or "*") and fnmatchcase(model, self.model or "*")


def merged(base: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of both; values of `other` replace those of `base`, at any depth."""
    made = dict(base)
    for key, value in other.items():
        below = made.get(key)
        deeper = isinstance(below, Mapping) and isinstance(value, Mapping)
        made[key] = merged(below, value) if deeper else value  # type: ignore[arg-type]
    return made


def override_error(error: ValidationError, *key: str | int) -> InvalidKeyError:
    """Return the first error of a policy with overrides, as one about a key of the override.

    Args:
        key: path of the override's `set` from the policy.
    """
    first = error.errors()[0]
    path = [*key, *(part for part in first["loc"] if part != _KEY)]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, InvalidKeyError):
        return InvalidKeyError(cause.what, *path, *cause.key, found=cause.found, expected=cause.expected)
    message, expected = message_and_expected(first)
    value = "" if isinstance(first["input"], Mapping) else str(first["input"])
    return InvalidKeyError(message, *path, found=value, expected=expected)

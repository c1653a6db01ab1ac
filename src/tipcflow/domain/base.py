"""Base classes of domain types: immutable, strict about unknown fields, JSON in both directions."""

from pydantic import BaseModel, ConfigDict, ValidationInfo

# Context of the validation of a stored document: an earlier version of tipcflow accepted it.
STORED = {"stored": True}


def is_stored(info: ValidationInfo) -> bool:
    """Whether a stored document is validated, not a file or a request of a user."""
    return bool(info.context and info.context.get("stored"))


class Frozen(BaseModel):
    """An immutable value. Unknown fields are errors, so that no wrong value is accepted silently."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Record(Frozen):
    """A value written by another process, possibly of a newer version: unknown fields are ignored.

    User input (configuration, params of a run) is never a Record, because its unknown fields are errors.
    """

    model_config = ConfigDict(extra="ignore")

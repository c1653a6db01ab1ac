"""The base of every domain type: immutable, strict about unknown fields, JSON both ways."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """An immutable value. Unknown fields are errors, so that no wrong value is accepted silently."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Record(Frozen):
    """A value that another process wrote, perhaps one of a newer version: unknown fields are left out.

    What users write (configuration, params of a run) is never one: there an unknown field is a mistake.
    """

    model_config = ConfigDict(extra="ignore")

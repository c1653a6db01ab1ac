"""The base of every domain type: immutable, strict about unknown fields, JSON both ways."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """An immutable value. Unknown fields are errors, so that no wrong value is accepted silently."""

    model_config = ConfigDict(frozen=True, extra="forbid")

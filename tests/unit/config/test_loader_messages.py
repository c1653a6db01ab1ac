"""Validation errors name the expected value, in the words of our errors instead of pydantic's."""

from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from tipcflow.config.loader import message_and_expected


class Some(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    name: str = Field(default="a", min_length=1)
    count: int = Field(default=1, ge=1, le=20)
    share: float = Field(default=0.5, gt=0, lt=1)
    again: bool = False
    each: list[str] = []
    kind: Literal["a", "b"] = "a"
    env: dict[str, str] = {}
    odd: int = 1
    folder: str = Field(default="/a", pattern=r"^/")
    code: str = Field(default="a1", pattern=r"^[a-z]\d$")

    @field_validator("odd")
    @classmethod
    def _odd(cls, value: int) -> int:
        if value % 2 == 0:
            raise ValueError("PATH must be odd")
        return value


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("name", None, ("invalid value", "text")),
        ("name", "", ("invalid value", "at least 1 character(s)")),
        ("count", "7", ("invalid value", "a whole number")),
        ("count", 0, ("invalid value", "at least 1")),
        ("count", 21, ("invalid value", "at most 20")),
        ("share", 0.0, ("invalid value", "more than 0")),
        ("share", 1.0, ("invalid value", "less than 1")),
        ("share", "x", ("invalid value", "a number")),
        ("again", "yes", ("invalid value", "true or false")),
        ("each", "x", ("invalid value", "a list")),
        ("kind", "c", ("invalid value", "'a' or 'b'")),
        ("env", 3, ("invalid value", "keys with values")),
        ("odd", 2, ("PATH must be odd", "")),
        ("folder", "x", ("invalid value", "an absolute path")),
        ("code", "x", ("invalid value", r"text that matches ^[a-z]\d$")),
        ("other", 2, ("unknown key", "")),
    ],
)
def test_invalid_value_names_the_expected_value(key: str, value: object, expected: tuple[str, str]) -> None:
    with pytest.raises(ValidationError) as caught:
        Some.model_validate({key: value})
    assert message_and_expected(caught.value.errors()[0]) == expected


def test_a_missing_key_is_required() -> None:
    class Strict(BaseModel):
        name: str

    with pytest.raises(ValidationError) as caught:
        Strict.model_validate({})
    assert message_and_expected(caught.value.errors()[0]) == ("is required", "")

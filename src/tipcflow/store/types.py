"""Column types that make SQLite and PostgreSQL keep exactly the same values."""

import json
import math
from typing import Any

from pydantic import BaseModel
from sqlalchemy import Dialect, Double, Text
from sqlalchemy.types import TypeDecorator

from tipcflow.domain.masking import mask


def storable(text: str) -> str:
    """The text as both databases can keep it: PostgreSQL takes no NUL, neither takes lone surrogates."""
    if text.isascii():
        return text.replace("\0", "\ufffd")
    return text.replace("\0", "\ufffd").encode("utf-8", "backslashreplace").decode()


def dumps(value: Any) -> str:
    """JSON text of a value or a domain type; nan and inf are stored as `NaN` and `Infinity`, which `loads` reads.

    pydantic's own JSON mode writes them as null, so models are dumped as Python values first.
    """
    return json.dumps(value, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="python")
    if hasattr(value, "item"):  # numpy scalars
        return value.item()
    if isinstance(value, set | frozenset):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def loads(text: str) -> Any:
    """What `dumps` wrote."""
    return json.loads(text)


class Words(TypeDecorator[str]):
    """Text of any origin, log lines included."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """A plain `str` (an enum member would be adapted by its name), storable in both databases."""
        return None if value is None else storable(str(value))


class Reason(Words):
    """Why something ended as it did: it may quote a log, so secrets in it are masked."""

    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """The text, masked."""
        return super().process_bind_param(None if value is None else mask(str(value)), dialect)


class JsonText(TypeDecorator[Any]):
    """JSON as text: the databases' JSON types refuse nan and inf, and PostgreSQL's also refuses NUL."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        """JSON text; `None` stays NULL."""
        return None if value is None else dumps(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """The value again, tuples as lists."""
        return None if value is None else loads(value)


class Sample(TypeDecorator[float]):
    """A measured number, nan and inf included.

    SQLite cannot keep nan (it becomes NULL), so NULL *is* nan here in both databases: SQL aggregates then skip
    nan in both alike. A missing measurement is a missing row.
    """

    impl = Double
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: Dialect) -> float | None:
        """nan as NULL."""
        return None if value is None or math.isnan(value) else float(value)

    def process_result_value(self, value: float | None, dialect: Dialect) -> float:
        """NULL as nan."""
        return math.nan if value is None else value

"""Canonical JSON, so equal content has equal hashes."""

import hashlib
import json
import math
from typing import Any


def canonical(value: Any) -> bytes:
    """UTF-8 JSON with sorted keys, no spaces, and nan and inf as the strings `nan`, `inf`, `-inf`."""
    return json.dumps(
        plain(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode("utf-8", "backslashreplace")


def plain(value: Any) -> Any:
    """The value in types of JSON: tuples as lists, enumerations as their values, no nan."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        return str(value.value) if hasattr(value, "value") else value
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        items = [plain(item) for item in value]
        return sorted(items, key=str) if isinstance(value, set | frozenset) else items
    if hasattr(value, "model_dump"):
        return plain(value.model_dump(mode="python"))
    return str(value)


def sha256(value: Any) -> str:
    """Hex SHA-256 of the value's canonical form."""
    return hashlib.sha256(canonical(value)).hexdigest()

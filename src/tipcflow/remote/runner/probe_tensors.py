"""Hashes of a framework's tensors, by which the framework probe recognizes parameters; copied with it."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable

KEPT = 48  # hashes of tensors per kind: those with the smallest values, so that equal models keep the same ones
VALUES = 64  # of a tensor that are hashed, from its first and its last row
CHECKSUM_S = 2.0  # time limit of one checksum of all parameters
DEPTH = 3  # of dictionaries and lists in a saved state


def parameters(optimizer: Any) -> list[Any]:
    """Return the tensors that an optimizer trains."""
    groups = getattr(optimizer, "_parameter_list", None) or getattr(optimizer, "param_groups", None) or []
    found: list[Any] = []
    for one in groups:
        found += list(one["params"]) if isinstance(one, dict) else [one]
    return found


def tensors_in(value: Any, depth: int = DEPTH) -> list[Any]:
    """Return the tensors of a state: a dictionary, a list, or an object with `state_dict`."""
    if hasattr(value, "state_dict") and callable(value.state_dict):
        value = value.state_dict()
    parts = list(value.values()) if isinstance(value, dict) else value
    if isinstance(parts, (list, tuple)):
        return [one for part in parts[:10000] for one in (tensors_in(part, depth - 1) if depth else [])]
    return [value] if hasattr(value, "shape") and hasattr(value, "dtype") else []


def checksums(tensors: Iterable[Any]) -> list[str]:
    """Return the smallest hashes of tensors, by shape and some values. Tensors whose values are all the same, such
    as new biases, are left out: those of any two models are equal."""
    found, until = set(), time.monotonic() + CHECKSUM_S
    for tensor in tensors:
        name = checksum(tensor)
        if name:
            found.add(name)
        if time.monotonic() > until:
            break
    return sorted(found)[:KEPT]


def checksum(tensor: Any) -> str:
    """Return the hash of a tensor, '' for one without different values."""
    import hashlib

    shape = [int(size) for size in tensor.shape]
    if not shape or 0 in shape or max(shape) < 2:
        return ""
    first = last = tensor.detach() if hasattr(tensor, "detach") else tensor
    for _ in shape[1:]:
        first, last = first[0], last[-1]
    data = values(first[:VALUES]) + values(last[-VALUES:])
    if len({data[at : at + 4] for at in range(0, len(data), 4)}) < 2:
        return ""
    return hashlib.sha256(repr(shape).encode() + data).hexdigest()[:12]


def values(tensor: Any) -> bytes:
    """Return the values of a short tensor."""
    if hasattr(tensor, "cpu"):
        tensor = tensor.cpu()
    if "bfloat16" in str(tensor.dtype) and hasattr(tensor, "float"):
        tensor = tensor.float()
    made = tensor.numpy() if hasattr(tensor, "numpy") else tensor
    return bytes(made.tobytes())


def top_classes(array: Any) -> list[int]:
    """Return the index of the highest value of each row of a table of scores, -1 where several are the highest or
    one is nan; nothing for another output."""
    shape: tuple[int, ...] = getattr(array, "shape", ())
    if len(shape) != 2 or shape[1] < 2 or "float" not in str(getattr(array, "dtype", "")):
        return []
    found = []
    for row in array:
        at = int(row.argmax())
        found.append(at if int((row == row[at]).sum()) == 1 else -1)
    return found

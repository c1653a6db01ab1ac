"""Files of an exported model in Paddle's formats, made without Paddle."""

import json
import struct
from array import array
from pathlib import Path

_TYPES = {"float32": (5, "f"), "int8": (21, "b"), "int64": (3, "q")}
Operator = tuple[str, list[str], list[str]]


def write_model(
    folder: Path, operators: list[Operator], tensors: list[tuple[str, tuple[int, ...], list[float]]], *, old: bool
) -> Path:
    """Write `inference.pdmodel` or `inference.json`, and `inference.pdiparams`; return the latter's path."""
    folder.mkdir(parents=True, exist_ok=True)
    if old:
        (folder / "inference.pdmodel").write_bytes(program_buffer(operators))
    else:
        (folder / "inference.json").write_text(json.dumps(program_json(operators)))
    parameters = folder / "inference.pdiparams"
    parameters.write_bytes(b"".join(tensor(*one) for one in tensors))
    return parameters


def program_buffer(operators: list[Operator]) -> bytes:
    """A ProgramDesc with one block."""
    ops = b"".join(
        _text(4, b"".join(_arguments(1, inputs) + _arguments(2, outputs)) + _text(3, kind.encode()))
        for kind, inputs, outputs in operators
    )
    return _text(1, b"\x08\x00\x10\x00" + ops)


def program_json(operators: list[Operator]) -> dict[str, object]:
    """A program of Paddle 3; its values have numbers."""
    numbers: dict[str, int] = {}

    def values(names: list[str]) -> list[dict[str, int]]:
        return [{"%": numbers.setdefault(name, len(numbers) + 1)} for name in names]

    ops = [{"#": f"1.{kind}", "I": values(inputs), "O": values(outputs)} for kind, inputs, outputs in operators]
    return {"base_code": {}, "program": {"regions": [{"#": "r", "blocks": [{"#": "b", "ops": ops}]}]}}


def tensor(kind: str, dims: tuple[int, ...], values: list[float]) -> bytes:
    """One tensor as `.pdiparams` contains it."""
    number, code = _TYPES[kind]
    description = b"\x08" + bytes([number]) + b"".join(b"\x10" + _varint(dim) for dim in dims)
    data = array(code, values if code == "f" else [int(value) for value in values]).tobytes()
    return struct.pack("<IQIi", 0, 0, 0, len(description)) + description + data


def _arguments(field: int, names: list[str]) -> list[bytes]:
    return [_text(field, _text(1, b"X") + _text(2, name.encode())) for name in names]


def _text(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _varint(value: int) -> bytes:
    found = b""
    while value > 127:
        found += bytes([value & 127 | 128])
        value >>= 7
    return found + bytes([value])

"""What an exported model of Paddle consists of: operators of its program, and its parameters.

Read from the files, so that a script cannot only print that it has quantized or pruned a model. The formats are
those of Paddle 2 (`.pdmodel`, a protocol buffer) and of Paddle 3 (`.json`), and `.pdiparams`, which both write.
"""

from __future__ import annotations

import array
import json
import os
import struct
import sys
from typing import Any, BinaryIO, Callable, Dict, Iterable, Iterator, List, Set, Tuple

from .files import Json, open_regular

WEIGHTS, PROGRAMS = ".pdiparams", (".json", ".pdmodel")
PROGRAM_LIMIT = 16 << 20  # bytes of a program; a longer one is not read
ZEROS_LIMIT = 256 << 20  # bytes of parameters; zeros of larger ones are not counted
NAMES = 80  # kinds of operators in a report
# Operators with trained weights: their inputs decide whether a model computes with quantized values.
LAYERS = {
    "conv2d", "depthwise_conv2d", "conv2d_transpose", "depthwise_conv2d_transpose", "conv3d", "mul", "matmul",
    "matmul_v2", "fc", "linear", "fused_gemm_epilogue", "fused_conv2d", "fused_fc_elementwise_layernorm",
}  # fmt: skip
# Operators that compute with quantized weights themselves.
WHOLE = ("weight_only_linear", "llm_int8_linear", "fused_multi_transformer_int8")
# Paddle's numbers of types -> name, bytes, code of module `array`.
TYPES = {
    0: ("bool", 1, "b"), 1: ("int16", 2, "h"), 2: ("int32", 4, "i"), 3: ("int64", 8, "q"), 4: ("float16", 2, "H"),
    5: ("float32", 4, "f"), 6: ("float64", 8, "d"), 20: ("uint8", 1, "B"), 21: ("int8", 1, "b"),
    22: ("bfloat16", 2, "H"), 32: ("float8_e4m3fn", 1, "B"), 33: ("float8_e5m2", 1, "B"),
}  # fmt: skip
# An operator: its kind, and the names of its inputs and outputs.
Operator = Tuple[str, List[str], List[str]]


class Unreadable(Exception):
    """The files have another format."""


def model_of(path: str, beat: Callable[[], None]) -> Json:
    """Return what a model consists of (tipcflow.domain.ModelContent); `unread` is the reason if it is unknown.

    Args:
        path: its parameters, `….pdiparams`; the program is the file of that name next to them.
        beat: called repeatedly while a large file is read.
    """
    try:
        found = dict(_parameters(path, beat), **_operators(path[: -len(WEIGHTS)]))
    except Exception as error:  # the suite's files may have any content
        return {"unread": f"{type(error).__name__}: {error}"[:200]}
    return found


def _operators(prefix: str) -> Json:
    """Count operators, layers with weights, and those of them that get quantized inputs."""
    program = max((f for f in (prefix + end for end in PROGRAMS) if os.path.isfile(f)), key=_written, default="")
    if not program:
        raise Unreadable("no program next to the parameters")
    with open_regular(program) as handle:
        data = handle.read(PROGRAM_LIMIT + 1)
    if len(data) > PROGRAM_LIMIT:
        raise Unreadable(f"{os.path.basename(program)} is larger than {PROGRAM_LIMIT >> 20} MiB")
    ops = list(_of_json(json.loads(data.decode())) if program.endswith(".json") else _of_buffer(data))
    counts: Dict[str, int] = {}
    quantized: Set[str] = set()
    layers = converted = 0
    for kind, inputs, outputs in ops:
        counts[kind] = counts.get(kind, 0) + 1
        if "quantize" in kind:
            quantized.update(outputs)
        is_whole = kind.startswith(WHOLE)
        if kind in LAYERS or is_whole:
            layers += 1
            converted += is_whole or any(name in quantized for name in inputs)
    if not ops:
        raise Unreadable(f"{os.path.basename(program)} has no operators")
    kept = sorted(counts, key=lambda kind: (-counts[kind], kind))[:NAMES]
    return {
        "program": os.path.basename(program), "operators": {kind: counts[kind] for kind in sorted(kept)},
        "layers": layers, "quantized_layers": converted,
    }  # fmt: skip


def _written(path: str) -> int:
    return os.stat(path).st_mtime_ns


def _of_json(program: Any) -> Iterator[Operator]:
    """Yield the operators of a program of Paddle 3, in order; the names of dialects are left out."""
    waiting = [block for region in program["program"]["regions"] for block in region["blocks"]]
    while waiting:
        for op in waiting.pop()["ops"]:
            kind = str(op["#"]).rpartition(".")[2]
            outputs = [str(value.get("%")) for value in _list(op.get("O"))]
            if kind not in ("p", "parameter"):
                yield kind, [str(value.get("%")) for value in _list(op.get("I"))], outputs
            waiting += [block for region in op.get("regions", ()) for block in region["blocks"]]


def _list(value: Any) -> List[Any]:
    return value if isinstance(value, list) else [value] if isinstance(value, dict) else []


def _of_buffer(data: bytes) -> Iterator[Operator]:
    """Yield the operators of a program of Paddle 2 (ProgramDesc), in order."""
    for number, block in _fields(data):
        for part, op in _fields(block) if number == 1 else ():
            if part == 4:
                pieces = list(_fields(op))
                kind = b"".join(value for field, value in pieces if field == 3).decode()
                if kind not in ("feed", "fetch"):
                    yield kind, _names(pieces, 1), _names(pieces, 2)


def _names(pieces: Iterable[Tuple[int, bytes]], wanted: int) -> List[str]:
    """Return the variables of an operator's inputs (field 1) or outputs (field 2)."""
    found = [value for field, value in pieces if field == wanted]
    return [name.decode() for value in found for field, name in _fields(value) if field == 2]


def _fields(data: bytes) -> Iterator[Tuple[int, bytes]]:
    """Yield number and bytes of the fields of a protocol buffer; a number as value has 8 bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            yield key >> 3, (value & ((1 << 64) - 1)).to_bytes(8, "little")
            continue
        if kind == 2:
            size, at = _varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise Unreadable(f"a field of kind {kind}")
        if at + size > len(data):
            raise Unreadable("the program is cut off")
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> Tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
        if shift > 70:
            raise Unreadable("a number of more than 10 bytes")


def _parameters(path: str, beat: Callable[[], None]) -> Json:
    """Count the values of all parameters by type, and the zeros of those with two dimensions or more."""
    size = os.stat(path).st_size
    counts_zeros = size <= ZEROS_LIMIT
    found: Json = {"tensors": 0, "parameters": 0, "weights": 0, "zeros": 0 if counts_zeros else -1, "types": {}}
    with open_regular(path) as handle:
        while handle.tell() < size:
            kind, dims = _header(handle)
            if kind not in TYPES or any(dim < 0 for dim in dims):
                raise Unreadable(f"a tensor of type {kind}, shape {dims}")
            name, width, code = TYPES[kind]
            values = 1
            for dim in dims:
                values *= dim
            end = handle.tell() + values * width
            if end > size:
                raise Unreadable("the parameters are cut off")
            found["tensors"] += 1
            found["parameters"] += values
            found["types"][name] = found["types"].get(name, 0) + values
            if len(dims) > 1:
                found["weights"] += values
                if counts_zeros:
                    found["zeros"] += _zeros(handle, end, code, beat)
            handle.seek(end)
            beat()
    return found


def _header(handle: BinaryIO) -> Tuple[int, List[int]]:
    """Read what precedes a tensor's values: versions, levels of detail, and its description."""
    version, levels = struct.unpack("<IQ", handle.read(12))
    if version or levels > 8:
        raise Unreadable(f"a tensor of version {version}")
    for _ in range(levels):
        handle.seek(struct.unpack("<Q", handle.read(8))[0], os.SEEK_CUR)
    version, length = struct.unpack("<Ii", handle.read(8))
    if version or not 0 < length < 4096:
        raise Unreadable(f"a tensor of version {version}")
    kind, dims = -1, []
    for number, value in _fields(handle.read(length)):
        if number == 1:
            kind = int.from_bytes(value, "little")
        elif number == 2:
            dims.append(int.from_bytes(value, "little", signed=True))
    return kind, dims


def _zeros(handle: BinaryIO, end: int, code: str, beat: Callable[[], None]) -> int:
    """Count the zeros up to a position; of half floats, only those with a positive sign."""
    count = 0
    while handle.tell() < end:
        values = array.array(code, handle.read(min(1 << 20, end - handle.tell())))
        if sys.byteorder == "big":
            values.byteswap()
        count += values.count(0)
        beat()
    return count

"""Operators and parameters of exported models, read from their files."""

import pytest
from tests.support.framework.exported_model import tensor, write_model

from tipcflow.domain import ModelContent
from tipcflow.remote.runner import model_graph
from tipcflow.remote.runner.model_graph import model_of

PLAIN = [("conv2d", ["image", "w0"], ["a"]), ("relu", ["a"], ["b"]), ("matmul_v2", ["b", "w1"], ["c"])]
QUANTIZED = [
    ("quantize_linear", ["image"], ["q"]),
    ("dequantize_linear", ["q"], ["d"]),
    ("conv2d", ["d", "w0"], ["a"]),
    ("matmul_v2", ["a", "w1"], ["c"]),
]
TENSORS = [("float32", (2, 3), [0.0, 1.0, -2.0, 0.0, 5.0, 0.5]), ("float32", (2,), [0.0, 0.0])]


def content(path) -> ModelContent:
    return ModelContent.model_validate(model_of(str(path), lambda: None))


@pytest.mark.parametrize("old", [True, False])
def test_operators_and_parameters_are_counted(tmp_path, old):
    found = content(write_model(tmp_path, PLAIN, TENSORS, old=old))
    assert found.unread == ""
    assert found.program == ("inference.pdmodel" if old else "inference.json")
    assert found.operators == {"conv2d": 1, "relu": 1, "matmul_v2": 1}
    assert (found.layers, found.quantized_layers) == (2, 0)
    assert (found.tensors, found.parameters, found.weights, found.zeros) == (2, 8, 6, 2)
    assert found.types == {"float32": 8}


@pytest.mark.parametrize("old", [True, False])
def test_layers_with_quantized_inputs_are_counted(tmp_path, old):
    tensors = [("int8", (2, 2), [1.0, 0.0, 3.0, 4.0]), *TENSORS]
    found = content(write_model(tmp_path, QUANTIZED, tensors, old=old))
    assert (found.layers, found.quantized_layers) == (2, 1)
    assert found.types == {"int8": 4, "float32": 8}


def test_a_newer_program_is_read_instead_of_an_older_one(tmp_path):
    write_model(tmp_path, PLAIN, TENSORS, old=True)
    import os

    os.utime(tmp_path / "inference.pdmodel", (1, 1))
    assert content(write_model(tmp_path, QUANTIZED, TENSORS, old=False)).quantized_layers == 1


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("inference.pdiparams", b"\x01", "error: unpack requires a buffer of 12 bytes"),
        ("inference.pdiparams", b"weights of PyTorch, or any text", "Unreadable: a tensor of version"),
        ("inference.pdiparams", tensor("float32", (4,), [1.0, 2.0]), "Unreadable: the parameters are cut off"),
        ("inference.pdmodel", b"\x0a\x7f", "Unreadable: the program is cut off"),
        ("inference.pdmodel", b"", "Unreadable: inference.pdmodel has no operators"),
        ("inference.pdmodel", b"\xff" * 40, "Unreadable: a number of more than 10 bytes"),
    ],
)
def test_other_content_is_reported_as_unread(tmp_path, name, data, why):
    path = write_model(tmp_path, PLAIN, TENSORS, old=True)
    (tmp_path / name).write_bytes(data)
    assert content(path).unread.startswith(why)


def test_a_missing_or_large_program_is_reported_as_unread(tmp_path, monkeypatch):
    path = write_model(tmp_path, PLAIN, TENSORS, old=True)
    monkeypatch.setattr(model_graph, "PROGRAM_LIMIT", 10)
    assert content(path).unread == "Unreadable: inference.pdmodel is larger than 0 MiB"
    (tmp_path / "inference.pdmodel").unlink()
    assert content(path).unread == "Unreadable: no program next to the parameters"


def test_zeros_of_large_parameters_are_not_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(model_graph, "ZEROS_LIMIT", 10)
    found = content(write_model(tmp_path, PLAIN, TENSORS, old=True))
    assert (found.parameters, found.zeros, found.unread) == (8, -1, "")


def test_the_record_of_an_export_has_the_content(bench, tmp_path):
    write_model(tmp_path / "made", QUANTIZED, TENSORS, old=True)
    record = bench.end_of(f"cp {tmp_path}/made/* .", expects=("*.pdiparams",))
    (output,) = record.outputs
    assert (output.path, output.content.quantized_layers) == ("inference.pdiparams", 1)

"""Quantization, in a training or after it: weights and inputs of convolutions and matrix products get 8 bits."""

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np
import paddle
from paddle import nn
from paddle.quantization import ImperativeQuantAware
from paddle.static.quantization import PostTrainingQuantization

# Part of the names of the scales, which only a quantized network has.
_SCALES = "_fake_quant_weight._scale"


class Calibration(Protocol):
    """Batches of images: name of the model's input -> values."""

    def __len__(self) -> int:
        """The number of batches."""

    def __call__(self) -> Iterator[dict[str, np.ndarray]]:
        """Yields the batches."""


def _quantizer() -> ImperativeQuantAware:
    """Weights with a scale for each channel, inputs with a moving average of their largest value."""
    return ImperativeQuantAware(
        quantizable_layer_type=["Conv2D", "Linear"],
        weight_quantize_type="channel_wise_abs_max",
        activation_quantize_type="moving_average_abs_max",
        onnx_format=True,
    )


def quantize(model: nn.Layer) -> nn.Layer:
    """Adds the rounding to a network, in place; returns the network.

    Not to depthwise convolutions: the quantizer gives no scale for their outputs, and with the scale that Paddle's
    engine then assumes, 4 of 60 images got another class.
    """
    for layer in model.sublayers():
        if isinstance(layer, nn.Conv2D) and layer._groups > 1:
            layer.skip_quant = True
    return _quantizer().quantize(model)


def is_quantized(state: dict[str, paddle.Tensor]) -> bool:
    """Whether saved weights are those of a quantized network."""
    return any(name.endswith(_SCALES) for name in state)


def save_quantized(network: nn.Layer, path: Path, spec: paddle.static.InputSpec) -> None:
    """Exports a quantized network with 8-bit weights, in the program format of Paddle 2: with its newer format,
    Paddle has no int8 on CPUs."""
    _quantizer().save_quantized_model(network, str(path), input_spec=[spec])


def quantize_exported(
    network: nn.Layer, work: Path, folder: Path, spec: paddle.static.InputSpec, calibration: Calibration, algo: str
) -> None:
    """Exports a network, finds the scales of its values with calibration images, and writes the 8-bit model.

    The process must have been started with FLAGS_enable_pir_api=0: only programs of Paddle 2 can be quantized.

    Args:
        work: an empty folder for the export.
        folder: of the 8-bit model, `inference.pdmodel` and `inference.pdiparams`.
        algo: how a scale follows from the observed values, by Paddle's name.
    """
    paddle.jit.save(paddle.jit.to_static(network, input_spec=[spec]), str(work / "inference"))
    paddle.enable_static()
    made = PostTrainingQuantization(
        executor=paddle.static.Executor(paddle.CPUPlace()),
        model_dir=str(work),
        model_filename="inference.pdmodel",
        params_filename="inference.pdiparams",
        data_loader=calibration,
        batch_nums=len(calibration),
        algo=algo,
        quantizable_op_type=["conv2d", "depthwise_conv2d", "matmul_v2"],
        onnx_format=True,
    )
    with contextlib.redirect_stdout(io.StringIO()):
        # Progress bars, a line per step where the output is a file.
        made.quantize()
    made.save_quantized_model(str(folder), model_filename="inference.pdmodel")
    paddle.disable_static()

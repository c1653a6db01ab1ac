"""Weights on disk."""

from pathlib import Path

import paddle
from paddle import nn

from mobilenet.arguments import refuse
from mobilenet.model import MobileNetV3Small
from mobilenet.prototypes import CLASSES
from mobilenet.pruning import widths_in
from mobilenet.quantizing import is_quantized, quantize


def load_model(path: str) -> MobileNetV3Small:
    """The network of saved weights, pruned or quantized as they are; ends the process if they are missing or do
    not fit.

    Args:
        path: `.pdparams`; the suffix may be left out.
    """
    file = Path(path) if path.endswith(".pdparams") else Path(path + ".pdparams")
    if not file.is_file():
        refuse(f"weights {file} are missing: train first, or correct --pretrained")
    try:
        state = paddle.load(str(file))
    except Exception as problem:  # a broken file makes Paddle raise nearly anything
        refuse(f"weights {file} cannot be read: {problem}")
    # A quantized layer is inside of another one.
    plain = {name.replace("._layer.", "."): value for name, value in state.items()}
    model = MobileNetV3Small(CLASSES, widths=widths_in(plain) or None)
    if is_quantized(state):
        quantize(model)
    missing, unexpected = model.set_state_dict(state)
    if missing or unexpected:
        refuse(f"weights {file} do not fit the model: missing {missing[:3]}, not expected {unexpected[:3]}")
    return model


def save_weights(model: nn.Layer, file: Path) -> None:
    """Saves through a temporary name, so that a file with the final name is complete."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.part")
    paddle.save(model.state_dict(), str(part))
    part.replace(file)

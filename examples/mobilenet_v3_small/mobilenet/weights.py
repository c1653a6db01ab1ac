"""Weights on disk."""

from pathlib import Path

import paddle
from paddle import nn

from mobilenet.arguments import refuse


def load_weights(model: nn.Layer, path: str) -> None:
    """Loads `.pdparams` (the suffix may be left out); ends the process when they are missing or do not fit."""
    file = Path(path) if path.endswith(".pdparams") else Path(path + ".pdparams")
    if not file.is_file():
        refuse(f"weights {file} are missing: train first, or correct --pretrained")
    try:
        state = paddle.load(str(file))
    except Exception as problem:  # a broken file makes Paddle raise nearly anything
        refuse(f"weights {file} cannot be read: {problem}")
    missing, unexpected = model.set_state_dict(state)
    if missing or unexpected:
        refuse(f"weights {file} do not fit the model: missing {missing[:3]}, not expected {unexpected[:3]}")


def save_weights(model: nn.Layer, file: Path) -> None:
    """Saves through a temporary name, so that a file with the final name is complete."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.part")
    paddle.save(model.state_dict(), str(part))
    part.replace(file)

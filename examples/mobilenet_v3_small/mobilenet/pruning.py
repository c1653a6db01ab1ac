"""Fewer channels: the most redundant ones of each block are removed, by their distance to all others.

The rule is that of "Filter Pruning via Geometric Median" (arXiv 1811.00250): a filter near the median of its layer
is one that the others can replace.
"""

from collections.abc import Iterator

import numpy as np
import paddle
from paddle import nn

from mobilenet.model import InvertedResidual, MobileNetV3Small

# Kept channels are a multiple of it, as in the whole network.
_MULTIPLE = 8


def pruned(model: MobileNetV3Small, classes: int, share: float) -> MobileNetV3Small:
    """A new, narrower network with the remaining weights.

    Args:
        share: of the channels of each block that are removed, 0..1, rounded to a multiple of 8 channels.
    """
    kept = [_kept(block, share) for block in model.blocks]
    narrow = MobileNetV3Small(classes, widths=[len(channels) for channels in kept])
    state = {name: value.numpy() for name, value in model.state_dict().items()}
    for number, (block, channels) in enumerate(zip(model.blocks, kept, strict=True), start=1):
        for name, axis in _cuts(block):
            key = f"features.{number}.layers.{name}"
            state[key] = np.take(state[key], channels, axis=axis)
    narrow.set_state_dict({name: paddle.to_tensor(value) for name, value in state.items()})
    return narrow


def widths_in(state: dict[str, paddle.Tensor]) -> list[int]:
    """The width of each block in saved weights: the channels of its depthwise convolution."""
    widths = []
    while any(name.startswith(f"features.{len(widths) + 1}.layers.") for name in state):
        keys = [f"features.{len(widths) + 1}.layers.{place}.0.weight" for place in (0, 1)]
        widths.append(next(int(state[key].shape[0]) for key in keys if key in state and state[key].shape[1] == 1))
    return widths


def _depthwise(block: InvertedResidual) -> int:
    return 1 if block.widens else 0


def _kept(block: InvertedResidual, share: float) -> np.ndarray:
    """The channels that remain, in their order; all of a block whose channels are those of its input."""
    count = block.expanded
    remaining = max(_MULTIPLE, round(count * (1 - share) / _MULTIPLE) * _MULTIPLE)
    if not block.widens or remaining >= count:
        return np.arange(count)
    filters = block.layers[0][0].weight.numpy().reshape(count, -1)
    distances = np.linalg.norm(filters[:, None] - filters[None], axis=-1).sum(axis=1)
    return np.sort(np.argsort(distances, kind="stable")[count - remaining :])


def _cuts(block: InvertedResidual) -> Iterator[tuple[str, int]]:
    """(name of a tensor, axis) of everything in a block that has its expanded channels."""
    norm = ("weight", "bias", "_mean", "_variance")
    for place in range(_depthwise(block) + 1):
        yield f"{place}.0.weight", 0
        yield from ((f"{place}.1.{name}", 0) for name in norm)
    after = _depthwise(block) + 1
    if not isinstance(block.layers[after], nn.Sequential):
        yield from ((f"{after}.weigh.1.weight", 1), (f"{after}.weigh.3.weight", 0), (f"{after}.weigh.3.bias", 0))
        after += 1
    yield f"{after}.0.weight", 1

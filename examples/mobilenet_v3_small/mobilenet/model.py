"""MobileNetV3-small for small images.

Structure after "Searching for MobileNetV3" (arXiv 1905.02244), table 2, with the layers' widths multiplied by a
scale. Batch normalisation forgets faster than is usual: a lite training has some dozens of steps only, and
evaluation would else use statistics that are still near their start values.
"""

from collections.abc import Sequence
from typing import NamedTuple

import paddle
from paddle import nn

SCALE = 0.35
BN_MOMENTUM = 0.7


class _Row(NamedTuple):
    kernel: int
    expanded: int
    out: int
    squeeze: bool
    activation: type[nn.Layer]
    stride: int


_ROWS = (
    _Row(3, 16, 16, True, nn.ReLU, 2),
    _Row(3, 72, 24, False, nn.ReLU, 2),
    _Row(3, 88, 24, False, nn.ReLU, 1),
    _Row(5, 96, 40, True, nn.Hardswish, 2),
    _Row(5, 240, 40, True, nn.Hardswish, 1),
    _Row(5, 240, 40, True, nn.Hardswish, 1),
    _Row(5, 120, 48, True, nn.Hardswish, 1),
    _Row(5, 144, 48, True, nn.Hardswish, 1),
    _Row(5, 288, 96, True, nn.Hardswish, 2),
    _Row(5, 576, 96, True, nn.Hardswish, 1),
    _Row(5, 576, 96, True, nn.Hardswish, 1),
)


def _width(channels: float) -> int:
    """The scaled width, a multiple of 8 that is not more than a tenth smaller."""
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * channels else rounded


def _conv(
    channels: int, out: int, kernel: int, *, stride: int = 1, groups: int = 1, act: type[nn.Layer] | None = None
) -> nn.Sequential:
    layers: list[nn.Layer] = [
        nn.Conv2D(channels, out, kernel, stride, padding=kernel // 2, groups=groups, bias_attr=False),
        nn.BatchNorm2D(out, momentum=BN_MOMENTUM),
    ]
    if act is not None:
        layers.append(act())
    return nn.Sequential(*layers)


class SqueezeExcitation(nn.Layer):
    """Weighs the channels by the content of the whole image; [N, C, H, W] -> [N, C, H, W]."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.weigh = nn.Sequential(
            nn.AdaptiveAvgPool2D(1),
            nn.Conv2D(channels, squeezed, 1),
            nn.ReLU(),
            nn.Conv2D(squeezed, channels, 1),
            nn.Hardsigmoid(),
        )

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        """Scales the channels."""
        return x * self.weigh(x)


class InvertedResidual(nn.Layer):
    """Widen, convolve each channel, weigh, narrow; with a shortcut where the shape stays.

    Attributes:
        expanded: channels between widening and narrowing, which no other block sees.
        widens: whether the block has a layer that makes them; without it, they are those of its input.
    """

    def __init__(self, channels: int, row: _Row, scale: float, width: int | None = None) -> None:
        super().__init__()
        full, out = _width(row.expanded * scale), _width(row.out * scale)
        expanded = full if width is None else width
        self.expanded, self.widens = expanded, full != channels
        layers: list[nn.Layer] = []
        if self.widens:
            layers.append(_conv(channels, expanded, 1, act=row.activation))
        layers.append(
            _conv(expanded, expanded, row.kernel, stride=row.stride, groups=expanded, act=row.activation)
        )
        if row.squeeze:
            layers.append(SqueezeExcitation(expanded, _width(full / 4)))
        layers.append(_conv(expanded, out, 1))
        self.layers = nn.Sequential(*layers)
        self.shortcut = row.stride == 1 and channels == out
        self.out = out

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        """One block."""
        y = self.layers(x)
        return x + y if self.shortcut else y


class MobileNetV3Small(nn.Layer):
    """Images [N, 3, H, W] -> logits [N, classes].

    Args:
        widths: `expanded` of each block, where channels were removed; the table's by default.
    """

    def __init__(self, classes: int, scale: float = SCALE, widths: Sequence[int] | None = None) -> None:
        super().__init__()
        channels = _width(16 * scale)
        layers: list[nn.Layer] = [_conv(3, channels, 3, stride=2, act=nn.Hardswish)]
        self.blocks: list[InvertedResidual] = []
        for row, width in zip(_ROWS, widths or [None] * len(_ROWS), strict=True):
            block = InvertedResidual(channels, row, scale, width)
            self.blocks.append(block)
            layers.append(block)
            channels = block.out
        last = _width(576 * scale)
        layers += [_conv(channels, last, 1, act=nn.Hardswish), nn.AdaptiveAvgPool2D(1), nn.Flatten()]
        self.features = nn.Sequential(*layers)
        hidden = _width(1024 * scale)
        self.head = nn.Sequential(nn.Linear(last, hidden), nn.Hardswish(), nn.Linear(hidden, classes))

    def forward(self, x: paddle.Tensor) -> paddle.Tensor:
        """The logits."""
        return self.head(self.features(x))

"""A small convolution network for gray images of 28 x 28."""

import torch
from torch import nn

from multinode.images import CLASSES


class ConvNet(nn.Module):
    """Images float32 [count, 1, 28, 28] -> logits [count, CLASSES]. Without batch norm: ranks stay equal."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 8, kernel_size=5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(8, 16, kernel_size=3, stride=2, padding=1),
            nn.ReLU(),
        )
        self.classify = nn.Sequential(nn.Flatten(), nn.Linear(16 * 7 * 7, 64), nn.ReLU(), nn.Linear(64, CLASSES))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """The logits."""
        return self.classify(self.features(images))

"""A small detector: shared convolutions, a probability map and a threshold map of the size of the image."""

import paddle
from paddle import nn

STEEPNESS = 50.0


def _block(inputs, outputs, stride):
    return nn.Sequential(
        nn.Conv2D(inputs, outputs, 3, stride=stride, padding=1, bias_attr=False),
        nn.BatchNorm2D(outputs, momentum=0.8),
        nn.ReLU(),
    )


def _head(inputs):
    return nn.Sequential(
        nn.Conv2DTranspose(inputs, inputs, 2, stride=2),
        nn.ReLU(),
        nn.Conv2DTranspose(inputs, 1, 2, stride=2),
        nn.Sigmoid(),
    )


class Detector(nn.Layer):
    """Images [N, 3, H, W] -> the probability of text per pixel; in training all three maps."""

    def __init__(self, width=16):
        super().__init__()
        self.backbone = nn.Sequential(
            _block(3, width, 2), _block(width, 2 * width, 2), _block(2 * width, 2 * width, 1)
        )
        self.probability = _head(2 * width)
        self.threshold = _head(2 * width)

    def forward(self, images):
        features = self.backbone(images)
        probability = self.probability(features)
        if not self.training:
            return probability
        threshold = self.threshold(features)
        binary = nn.functional.sigmoid(STEEPNESS * (probability - threshold))
        return probability, threshold, binary


def losses(maps, text, border):
    """The total and its parts, by the names in the log.

    Args:
        text: 1 within shrunk boxes.
        border: 1 near the edges of boxes, where the threshold is learned.
    """
    probability, threshold, binary = maps
    shrink = 5 * _dice(probability, text)
    edge = 10 * (paddle.abs(threshold - 0.5) * border).sum() / (border.sum() + 1e-6)
    both = _dice(binary, text)
    return {
        "loss": shrink + edge + both,
        "loss_shrink_maps": shrink,
        "loss_threshold_maps": edge,
        "loss_binary_maps": both,
    }


def _dice(found, wanted):
    return 1 - 2 * (found * wanted).sum() / (found.sum() + wanted.sum() + 1e-6)

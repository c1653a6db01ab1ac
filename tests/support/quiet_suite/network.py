"""Network and data of the quiet suite: the class of an image is the sign of its mean."""

import numpy
import paddle


class Network(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.body = paddle.nn.Sequential(paddle.nn.Linear(16, 32), paddle.nn.ReLU(), paddle.nn.Linear(32, 2))

    def forward(self, images):
        return self.body(images)


def batch(seed):
    made = numpy.random.RandomState(seed)
    labels = made.randint(0, 2, (64, 1))
    images = made.randn(64, 16) + (labels * 2 - 1)
    return paddle.to_tensor(images.astype("float32")), paddle.to_tensor(labels.astype("int64"))

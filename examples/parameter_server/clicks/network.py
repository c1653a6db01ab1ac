"""A static network whose embedding is held by parameter servers."""

from typing import NamedTuple

import paddle

from clicks.data import IDS

WIDTH = 8


class Network(NamedTuple):
    """Variables of the program: inputs, mean loss, and probability of a click of shape [n, 1]."""

    inputs: list[paddle.static.Variable]
    loss: paddle.static.Variable
    click: paddle.static.Variable


def network() -> Network:
    """Add the network to the default program."""
    users = paddle.static.data("users", [-1, 1], "int64")
    items = paddle.static.data("items", [-1, 1], "int64")
    clicks = paddle.static.data("clicks", [-1, 1], "float32")
    # One table for both: trainers pull only the rows of a batch, and push their gradients.
    rows = [paddle.reshape(_embedding(ids), [-1, WIDTH]) for ids in (users, items)]
    hidden = paddle.static.nn.fc(paddle.concat(rows, axis=1), 16, activation="relu", name="hidden")
    click = paddle.nn.functional.sigmoid(paddle.static.nn.fc(hidden, 1, name="click"))
    loss = paddle.mean(paddle.nn.functional.binary_cross_entropy(click, clicks))
    return Network([users, items, clicks], loss, click)


def _embedding(ids: paddle.static.Variable) -> paddle.static.Variable:
    start = paddle.nn.initializer.Uniform(-0.1, 0.1)
    return paddle.static.nn.sparse_embedding(
        ids, size=[IDS, WIDTH], param_attr=paddle.ParamAttr(name="table", initializer=start)
    )

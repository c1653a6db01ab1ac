"""Generated clicks: a user clicks on an item if both together are popular enough."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

USERS, ITEMS = 400, 200
IDS = USERS + ITEMS


class Batch(NamedTuple):
    """Samples, each of shape [n, 1]: ids of users, ids of items (from USERS on), 1 for a click."""

    users: np.ndarray
    items: np.ndarray
    clicks: np.ndarray


def samples(count: int, *, seed: int) -> Batch:
    """Return random samples; the popularity of users and items is the same for every seed."""
    popularity = np.random.default_rng(2026).normal(size=IDS)
    random = np.random.default_rng(seed)
    users = random.integers(0, USERS, (count, 1))
    items = random.integers(USERS, IDS, (count, 1))
    clicks = (popularity[users] + popularity[items] > 0).astype("float32")
    return Batch(users, items, clicks)


def batches(count: int, size: int, *, seed: int, epoch: int, rank: int) -> Iterator[Batch]:
    """Yield a trainer's own batches of one epoch; every rank and epoch has other samples."""
    drawn = samples(count * size, seed=(seed % 997) * 100_000 + epoch * 1_000 + rank)
    for at in range(0, count * size, size):
        yield Batch(*(values[at : at + size] for values in drawn))

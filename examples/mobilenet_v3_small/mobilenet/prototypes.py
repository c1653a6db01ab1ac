"""Learnable images from a seed: each class has a colored 8 x 8 pattern; an image is that plus shift and noise.

No Paddle here, so that making the data needs numpy and Pillow alone.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

CLASSES = 10
SIZE = 64
CELLS = 8
SEED = 7

_NOISE = 12.0
_FADE = 0.85


def prototypes() -> np.ndarray:
    """The patterns, float64 [CLASSES, SIZE, SIZE, 3], grey values 0..255; equal on every machine."""
    random = np.random.default_rng([SEED, 0])
    colours = random.uniform(40, 215, (CLASSES, 1, 1, 3))
    cells = colours + random.uniform(-60, 60, (CLASSES, CELLS, CELLS, 3))
    scale = SIZE // CELLS
    return np.clip(cells, 0, 255).repeat(scale, axis=1).repeat(scale, axis=2)


def pictures(count: int, part: int) -> Iterator[tuple[int, Image.Image]]:
    """`count` images of one part of the data, classes in turn; parts have different noise."""
    patterns = prototypes()
    for index in range(count):
        random = np.random.default_rng([SEED, part, index])
        label = index % CLASSES
        strength = random.uniform(_FADE, 1)
        shifted = np.roll(patterns[label], random.integers(-2, 3, 2), axis=(0, 1))
        # Noise per 2 x 2 pixels: a PNG of finer noise is three times as large and teaches nothing more.
        noise = random.normal(0, _NOISE, (SIZE // 2, SIZE // 2, 3)).repeat(2, axis=0).repeat(2, axis=1)
        values = 128 + strength * (shifted - 128) + noise
        yield label, Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))


def write(folder: Path, count: int, part: int, name: str = "{index:04d}.png") -> list[tuple[str, int]]:
    """Writes images into a folder; returns (file name, class) of each."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for index, (label, picture) in enumerate(pictures(count, part)):
        file = name.format(index=index, label=label)
        picture.save(folder / file, compress_level=1)
        written.append((file, label))
    return written

"""Images of ten classes in the file format of MNIST: generated from a fixed seed, written and read.

The files have the names and the format of the real dataset, so a folder with MNIST also works.
"""

import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch.utils.data import Dataset

from multinode.arguments import refuse

CLASSES, SIZE = 10, 28
TRAIN, TEST = "train", "t10k"
_SEED, _CELLS, _NOISE = 11, 7, 25.0
# The third byte is the type (8: unsigned bytes), the fourth the number of dimensions.
_LABELS, _IMAGES = 0x0801, 0x0803


class Images(NamedTuple):
    """Gray values uint8 [count, SIZE, SIZE], and classes uint8 [count]."""

    pixels: np.ndarray
    labels: np.ndarray


def generate(count: int, part: str) -> Images:
    """`count` images of one part of the data, classes in turn: a pattern per class, shifted, with noise."""
    patterns = np.random.default_rng([_SEED, 0]).uniform(30, 225, (CLASSES, _CELLS, _CELLS))
    scale = SIZE // _CELLS
    patterns = patterns.repeat(scale, axis=1).repeat(scale, axis=2)
    random = np.random.default_rng([_SEED, 1 if part == TRAIN else 2])
    labels = np.arange(count) % CLASSES
    shifts = random.integers(-2, 3, (count, 2))
    moved = np.stack(
        [np.roll(patterns[label], shift, (0, 1)) for label, shift in zip(labels, shifts, strict=True)]
    )
    noisy = moved + random.normal(0, _NOISE, moved.shape)
    return Images(np.clip(noisy, 0, 255).astype(np.uint8), labels.astype(np.uint8))


def write(folder: Path, part: str, images: Images) -> None:
    """Writes the two files of a part."""
    count = len(images.labels)
    head = struct.pack(">IIII", _IMAGES, count, SIZE, SIZE)
    (folder / f"{part}-images-idx3-ubyte").write_bytes(head + images.pixels.tobytes())
    (folder / f"{part}-labels-idx1-ubyte").write_bytes(
        struct.pack(">II", _LABELS, count) + images.labels.tobytes()
    )


def read(folder: Path, part: str) -> Images:
    """Reads the two files of a part; ends the process with 2 if one is missing or damaged."""
    pixels = _numbers(folder / f"{part}-images-idx3-ubyte", _IMAGES, (SIZE, SIZE))
    labels = _numbers(folder / f"{part}-labels-idx1-ubyte", _LABELS, ())
    if len(pixels) != len(labels):
        refuse(f"{folder}: {len(pixels)} images and {len(labels)} labels in part {part}")
    return Images(pixels, labels)


def _numbers(file: Path, magic: int, shape: tuple[int, ...]) -> np.ndarray:
    if not file.is_file():
        refuse(f"{file} is missing: `python tools/make_data.py --root {file.parent}` generates it")
    data = file.read_bytes()
    size = 8 + 4 * len(shape)
    head = struct.unpack(f">{size // 4}I", data[:size]) if len(data) >= size else (0, 0)
    count = head[1]
    if head[0] != magic or head[2:] != shape or len(data) != size + count * int(np.prod(shape, initial=1)):
        refuse(f"{file} is damaged: expected {count} items of shape {shape} in the format of MNIST")
    return np.frombuffer(data, np.uint8, offset=size).reshape(count, *shape)


class ImageSet(Dataset):
    """Images as tensors float32 [1, SIZE, SIZE] with values around 0, each with its class and its index."""

    def __init__(self, images: Images) -> None:
        self.images = images

    def __len__(self) -> int:
        return len(self.images.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int, int]:
        pixels = torch.from_numpy(self.images.pixels[index].copy()).float().unsqueeze(0) / 64 - 2
        return pixels, int(self.images.labels[index]), index

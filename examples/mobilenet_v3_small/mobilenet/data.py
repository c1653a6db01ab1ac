"""Image files -> batches of arrays. No Paddle here: inference and training share it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from mobilenet.arguments import refuse
from mobilenet.prototypes import SIZE

SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".bmp"})
Batch = tuple[np.ndarray, np.ndarray]


def read_picture(path: Path) -> np.ndarray:
    """One image as float32 [3, SIZE, SIZE] in -1..1."""
    try:
        with Image.open(path) as picture:
            rgb = picture.convert("RGB")
            rgb = rgb if rgb.size == (SIZE, SIZE) else rgb.resize((SIZE, SIZE), Image.Resampling.BILINEAR)
            values = np.asarray(rgb, dtype=np.float32)
    except OSError as problem:
        refuse(f"cannot read image {path}: {problem}")
    return ((values - 127.5) / 127.5).transpose(2, 0, 1)


def find_pictures(path: Path) -> list[Path]:
    """The image itself, or all images of a folder by name."""
    if path.is_file():
        return [path]
    found = sorted(file for file in path.glob("*") if file.suffix.lower() in SUFFIXES) if path.is_dir() else []
    if not found:
        refuse(f"no images at {path}: expected an image or a folder of {', '.join(sorted(SUFFIXES))}")
    return found


def read_list(root: Path, part: str) -> list[tuple[Path, int]]:
    """(image, class) of each line of `<root>/<part>_list.txt`: a path below root, a space, a class number."""
    file = root / f"{part}_list.txt"
    if not file.is_file():
        refuse(f"{file} is missing: run test_tipc/prepare.sh first")
    pairs = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        name, _, label = line.rpartition(" ")
        if not name or not label.isdecimal():
            refuse(f"{file}, line {number}: expected `path class`, found {line!r}")
        pairs.append((root / name, int(label)))
    if not pairs:
        refuse(f"{file} is empty")
    return pairs


def shard(count: int, *, seed: int, epoch: int, rank: int, world: int, batch: int) -> list[list[int]]:
    """This rank's batches of an epoch, as indices into the list.

    One shuffle for the whole world, dealt out to the ranks in turn; what does not fill a batch on every rank is
    left out, so that all ranks take the same number of steps. A set smaller than that is repeated.
    """
    order = np.random.default_rng([seed, epoch]).permutation(count)
    step = world * batch
    if count < step:
        order = np.resize(order, step)
    order = order[: len(order) // step * step]
    mine = order[rank::world]
    return [list(map(int, mine[start : start + batch])) for start in range(0, len(mine), batch)]


def load(items: Sequence[tuple[Path, int]]) -> Batch:
    """Images float32 [N, 3, SIZE, SIZE] and classes int64 [N]."""
    pictures = np.stack([read_picture(path) for path, _ in items])
    return pictures, np.asarray([label for _, label in items], dtype=np.int64)


def in_order(items: Sequence[tuple[Path, int]], batch: int) -> Iterator[Batch]:
    """All items, in their order; the last batch may be smaller."""
    for start in range(0, len(items), batch):
        yield load(items[start : start + batch])

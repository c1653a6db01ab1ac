"""Training and evaluation that the mnist and the data test share."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler

from multinode.group import Place
from multinode.images import ImageSet


class Course(NamedTuple):
    """How to train.

    Attributes:
        batch_size: images per process and step.
        log_interval: steps per printed line.
        after_epoch: called on every rank with the epoch and the indices that this rank trained on.
    """

    epochs: int
    batch_size: int
    test_batch_size: int
    log_interval: int
    seed: int
    after_epoch: Callable[[int, list[int]], None] = lambda _epoch, _indices: None


class Clock:
    """Seconds and images since the last printed line."""

    def __init__(self) -> None:
        self.mark = time.perf_counter()
        self.steps = self.images = 0
        self.batch_s = self.reader_s = 0.0

    def read(self) -> None:
        """A batch was read."""
        self.reader_s += time.perf_counter() - self.mark

    def step(self, images: int) -> None:
        """A step ended."""
        now = time.perf_counter()
        self.batch_s += now - self.mark
        self.mark = now
        self.steps += 1
        self.images += images

    def text(self) -> str:
        """Means per step."""
        return (
            f"batch_cost: {self.batch_s / self.steps:.6f} s, reader_cost: {self.reader_s / self.steps:.6f} s, "
            f"ips: {self.images / max(self.batch_s, 1e-9):.2f} images/sec"
        )


def train(
    model: nn.Module, optimizer: torch.optim.Optimizer, train_set: ImageSet, test_set: ImageSet, course: Course,
    place: Place,
) -> None:  # fmt: skip
    """Trains in place with data parallelism; rank 0 evaluates after each epoch."""
    sampler = DistributedSampler(train_set, place.world, place.rank, shuffle=True, seed=course.seed)
    loader = DataLoader(train_set, course.batch_size, sampler=sampler)
    network = DistributedDataParallel(model) if dist.is_initialized() else model
    for epoch in range(1, course.epochs + 1):
        sampler.set_epoch(epoch)
        model.train()
        trained: list[int] = []
        clock = Clock()
        for step, (images, labels, indices) in enumerate(loader, start=1):
            clock.read()
            logits = network(images.to(place.device))
            loss = nn.functional.cross_entropy(logits, labels.to(place.device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            trained += indices.tolist()
            value = loss.item()  # waits for the GPU
            clock.step(len(labels))
            if (step - 1) % course.log_interval == 0:
                place.say(
                    f"Epoch: {epoch}/{course.epochs}, Step: {step}/{len(loader)}, loss: {value:.9g}, "
                    f"{clock.text()}"
                )
                clock = Clock()
        course.after_epoch(epoch, trained)
        if place.leads:
            evaluate(model, test_set, course, place, epoch)


def evaluate(model: nn.Module, test_set: ImageSet, course: Course, place: Place, epoch: int) -> None:
    """Prints mean loss and accuracy in per cent."""
    model.eval()
    loss, hits = 0.0, 0
    with torch.no_grad():
        for images, labels, _ in DataLoader(test_set, course.test_batch_size):
            logits = model(images.to(place.device)).cpu()
            loss += nn.functional.cross_entropy(logits, labels, reduction="sum").item()
            hits += int((logits.argmax(dim=1) == labels).sum())
    count = len(test_set)
    place.say(
        f"Epoch: {epoch}/{course.epochs}, test loss: {loss / count:.9g}, test acc: {100 * hits / count:.2f}%"
    )


def save(state: object, folder: str, place: Place) -> None:
    """Rank 0 writes latest.pt, through a temporary name."""
    if not folder or not place.leads:
        return
    file = Path(folder) / "latest.pt"
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(".latest.pt.part")
    torch.save(state, part)
    part.replace(file)
    place.say(f"saved {file}")

"""Sums over the iterations since the last printed line, and the line itself."""

import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np


def hits(logits: np.ndarray, labels: np.ndarray, k: int) -> int:
    """How many labels are among the k highest logits."""
    best = np.argsort(-logits, axis=1, kind="stable")[:, :k]
    return int((best == labels[:, None]).any(axis=1).sum())


@dataclass
class Meter:
    """What one printed training line is made of. Times in seconds."""

    samples: int = 0
    top1: int = 0
    top5: int = 0
    loss: float = 0.0
    reader_s: float = 0.0
    batch_s: float = 0.0
    steps: int = 0
    mark: float = field(default_factory=time.perf_counter)

    def read(self) -> None:
        """The batch has been read."""
        self.reader_s += time.perf_counter() - self.mark

    def done(self, loss: float, logits: np.ndarray, labels: np.ndarray) -> None:
        """The step has been made."""
        now = time.perf_counter()
        self.batch_s += now - self.mark
        self.mark = now
        self.loss += loss * len(labels)
        self.top1 += hits(logits, labels, 1)
        self.top5 += hits(logits, labels, 5)
        self.samples += len(labels)
        self.steps += 1

    def line(self, epoch: int, iteration: int, rate: float) -> str:
        """The line in the form of the `models` suite."""
        samples, steps = self.samples, self.steps
        return (
            f"[Epoch {epoch}, iter: {iteration}] "
            f"top1: {self.top1 / samples:.5f}, top5: {self.top5 / samples:.5f}, "
            f"lr: {rate:.5f}, loss: {self.loss / samples:.9g}, avg_reader_cost: {self.reader_s / steps:.5f} sec, "
            f"avg_batch_cost: {self.batch_s / steps:.5f} sec, avg_samples: {samples / steps:.1f}, "
            f"avg_ips: {samples / max(self.batch_s, 1e-9):.5f} images/sec."
        )


class Log:
    """Lines on standard output, and for the leading process in a file too."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)

    def __call__(self, line: str) -> None:
        """Prints without buffering, so that the log shows the progress of the training."""
        print(line, flush=True)
        if self.file is not None:
            with self.file.open("a", encoding="utf-8") as log:
                log.write(line + "\n")

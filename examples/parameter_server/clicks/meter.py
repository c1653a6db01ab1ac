"""Printed lines of a training, in the form of PaddleRec."""

import time

import numpy as np


def auc(scores: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of (click, no click) pairs in which the click has the higher score; 0.5 without pairs."""
    scores, labels = scores.ravel(), labels.ravel() > 0
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    clicks = int(labels.sum())
    others = len(labels) - clicks
    if not clicks or not others:
        return 0.5
    return float((ranks[labels].sum() - clicks * (clicks + 1) / 2) / (clicks * others))


class Meter:
    """Times and samples since the last printed line, seconds."""

    def __init__(self) -> None:
        self.mark = time.perf_counter()
        self.steps = self.samples = 0
        self.batch_s = self.reader_s = 0.0

    def read(self) -> None:
        """Count the time of reading a batch."""
        self.reader_s += time.perf_counter() - self.mark

    def step(self, samples: int) -> None:
        """Count a step of that many samples."""
        now = time.perf_counter()
        self.batch_s += now - self.mark
        self.mark = now
        self.steps += 1
        self.samples += samples

    def line(self, epoch: int, step: int, loss: float, area: float) -> str:
        """Return the line of a step."""
        steps = max(1, self.steps)
        return (
            f"epoch: {epoch}, batch_id: {step}, auc:{area:.6f}, loss:{loss:.9g}, "
            f"avg_reader_cost: {self.reader_s / steps:.6f} sec, avg_batch_cost: {self.batch_s / steps:.6f} sec, "
            f"avg_samples: {self.samples / steps:.5f}, ips: {self.samples / max(self.batch_s, 1e-9):.5f} ins/s"
        )

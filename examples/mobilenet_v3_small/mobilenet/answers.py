"""One line per image: the prediction of a network or an engine."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mobilenet.data import read_picture


def print_answers(scores_of: Callable[[np.ndarray], np.ndarray], paths: list[Path]) -> None:
    """Prints `name<TAB>{"class_id": ..., "scores": [...]}`; nine digits bring a float32 back exactly."""
    scores = scores_of(np.stack([read_picture(path) for path in paths]))
    for path, row in zip(paths, scores, strict=True):
        answer = {"class_id": int(row.argmax()), "scores": [float(f"{score:.9g}") for score in row]}
        print(f"{path.name}\t{json.dumps(answer)}")

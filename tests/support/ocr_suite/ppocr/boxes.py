"""Boxes in a probability map, and how well they match the true ones."""

import numpy as np

THRESHOLD, BOX_THRESHOLD = 0.3, 0.5
# What training shrinks: predicted boxes are larger by as much.
GROW = 2


def find_boxes(probability):
    """Boxes (left, top, right, bottom) of connected pixels above the threshold, from top to bottom."""
    left_over = probability > THRESHOLD
    boxes = []
    while left_over.any():
        region = _region(left_over, np.unravel_index(np.argmax(left_over), left_over.shape))
        left_over &= ~region
        rows, columns = np.nonzero(region)
        top, bottom, left, right = rows.min(), rows.max() + 1, columns.min(), columns.max() + 1
        if min(bottom - top, right - left) > 2 and probability[region].mean() > BOX_THRESHOLD:
            height, width = probability.shape
            boxes.append(
                (max(left - GROW, 0), max(top - GROW, 0), min(right + GROW, width), min(bottom + GROW, height))
            )
    return boxes


def _region(mask, seed):
    region = np.zeros_like(mask)
    region[seed] = True
    while True:
        grown = region.copy()
        grown[1:] |= region[:-1]
        grown[:-1] |= region[1:]
        grown[:, 1:] |= region[:, :-1]
        grown[:, :-1] |= region[:, 1:]
        grown &= mask
        if (grown == region).all():
            return region
        region = grown


def corners(box):
    """The four corners of a box, clockwise, as numbers with a decimal point."""
    left, top, right, bottom = (float(number) for number in box)
    return [[left, top], [right, top], [right, bottom], [left, bottom]]


def quality(found, true):
    """Precision, recall and their harmonic mean over images; a box is right with an overlap above one half."""
    right = sum(_matches(boxes, wanted) for boxes, wanted in zip(found, true))
    precision = right / max(sum(map(len, found)), 1)
    recall = right / max(sum(map(len, true)), 1)
    return {
        "precision": precision,
        "recall": recall,
        "hmean": 2 * precision * recall / max(precision + recall, 1e-9),
    }


def _matches(boxes, wanted):
    free, matched = list(boxes), 0
    for box in wanted:
        best = max(free, key=lambda other: _overlap(box, other), default=None)
        if best is not None and _overlap(box, best) > 0.5:
            free.remove(best)
            matched += 1
    return matched


def _overlap(one, other):
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    both = max(width, 0) * max(height, 0)
    areas = [(box[2] - box[0]) * (box[3] - box[1]) for box in (one, other)]
    return both / (sum(areas) - both)

"""Images with boxes: the label files of ICDAR in PaddleOCR's form, and the maps of a batch."""

import json
import os

import numpy as np
from PIL import Image

SHRINK = 2
MULTIPLE = 4


def read_image(path):
    """Pixels float32 [3, H, W], H and W cropped to a multiple of the network's stride."""
    pixels = np.asarray(Image.open(path).convert("RGB"), dtype="float32") / 255.0 - 0.5
    height, width = (size // MULTIPLE * MULTIPLE for size in pixels.shape[:2])
    return pixels[:height, :width].transpose(2, 0, 1)


class Labelled:
    """Images of a label file with lines `file<TAB>[{"transcription": …, "points": [[x, y], …]}, …]`."""

    def __init__(self, config):
        folder, (label_file,) = config["data_dir"], config["label_file_list"]
        self.samples = []
        with open(label_file, encoding="utf-8") as lines:
            for line in lines:
                name, _, text = line.rstrip("\n").partition("\t")
                points = np.array([box["points"] for box in json.loads(text)], dtype="float32")
                boxes = np.concatenate([points.min(axis=1), points.max(axis=1)], axis=1)
                self.samples.append((read_image(os.path.join(folder, name)), boxes))

    def __len__(self):
        return len(self.samples)

    def batch(self, indexes):
        """Images, maps of text, maps of borders."""
        images = np.stack([self.samples[index][0] for index in indexes])
        text = np.zeros((len(indexes), 1, *images.shape[2:]), dtype="float32")
        border = np.zeros_like(text)
        for row, index in enumerate(indexes):
            for left, top, right, bottom in self.samples[index][1].astype(int):
                border[row, 0, max(top - 1, 0) : bottom + 1, max(left - 1, 0) : right + 1] = 1
                border[row, 0, top + SHRINK : bottom - SHRINK, left + SHRINK : right - SHRINK] = 0
                text[row, 0, top + SHRINK : bottom - SHRINK, left + SHRINK : right - SHRINK] = 1
        return images, text, border


def shares(count, batch_size, epoch, rank, ranks):
    """The batches of a rank in an epoch: equal numbers for all ranks, the order drawn from the epoch."""
    order = np.random.RandomState(epoch).permutation(count)
    per_rank = -(-count // ranks)
    own = np.resize(order, per_rank * ranks)[rank::ranks]
    return [own[start : start + batch_size] for start in range(0, per_rank, batch_size)]

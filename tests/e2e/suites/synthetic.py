"""Small archives in place of the data that the scripts of public suites download."""

import io
import json
import random
import tarfile
import zipfile
from collections.abc import Mapping

import numpy as np


def archive(files: Mapping[str, bytes]) -> bytes:
    """Return a tar archive of files."""
    with io.BytesIO() as buffer:
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            for name, data in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        return buffer.getvalue()


def imagenet() -> bytes:
    """Return an archive like whole_chain_little_train.tar of PaddleClas: 16 images for training and 8 for
    validation, of 4 classes."""
    source, files = random.Random(7), {}
    for kind, count in (("train", 16), ("val", 8)):
        names = [f"{kind}/ILSVRC2012_val_{number + 1:08}.JPEG" for number in range(count)]
        listed = "".join(f"{name} {number % 4}\n" for number, name in enumerate(names))
        files[f"whole_chain_little_train/{kind}.txt"] = listed.encode()
        for name in names:
            # A PPM: OpenCV decodes by content, not by file name.
            files[f"whole_chain_little_train/{name}"] = b"P6 256 256 255\n" + source.randbytes(3 * 256 * 256)
    return archive(files)


def supervisely() -> bytes:
    """Return an archive like mini_supervisely.zip of PaddleSeg: images with a dark rectangle, which is class 1."""
    source, height, width = random.Random(7), 112, 196
    mask = bytes(20 <= row < 80 and 40 <= column < 120 for row in range(height) for column in range(width))
    with io.BytesIO() as buffer:
        with zipfile.ZipFile(buffer, "w") as packed:
            for kind, count in (("train", 8), ("val", 4), ("test", 2)):
                names = [f"{kind}{number}.png" for number in range(count)]
                pairs = [f"Images/{name} Annotations/{name}" for name in names]
                lines = [pair.split()[0] if kind == "test" else pair for pair in pairs]
                packed.writestr(f"mini_supervisely/{kind}.txt", "".join(f"{line}\n" for line in lines))
                for name in names:
                    pixels = bytes(source.randrange(40 if dark else 256) for dark in mask for _ in range(3))
                    # PPM and PGM: readers decode by content, not by file name.
                    header = f" {width} {height} 255\n".encode()
                    packed.writestr(f"mini_supervisely/Images/{name}", b"P6" + header + pixels)
                    packed.writestr(f"mini_supervisely/Annotations/{name}", b"P5" + header + mask)
        return buffer.getvalue()


def icdar2015() -> bytes:
    """Return an archive like icdar2015_lite.tar of PaddleOCR: light boxes with dark strokes on a dark ground."""
    source, folder, width, height = random.Random(7), "icdar2015_lite/text_localization", 96, 64
    files: dict[str, bytes] = {}
    for kind, images, count in (("train", "icdar_c4_train_imgs", 8), ("test", "ch4_test_images", 4)):
        labels = []
        for number in range(count):
            pixels = bytearray(source.randrange(40, 110) for _ in range(width * height))
            boxes = []
            for row in range(1 + (number + (kind == "test")) % 3):
                left, right = source.randrange(6, 30), source.randrange(50, 90)
                top, bottom = 5 + 19 * row, 17 + 19 * row
                for y in range(top, bottom):
                    for x in range(left, right):
                        pixels[y * width + x] = 130 if (x - left) % 4 == 3 else source.randrange(200, 256)
                points = [[left, top], [right, top], [right, bottom], [left, bottom]]
                boxes.append({"transcription": f"text {row}", "points": points})
            name = f"{images}/img_{number + 1}.jpg"
            # A PPM: readers decode by content, not by file name.
            files[f"{folder}/{name}"] = f"P6 {width} {height} 255\n".encode() + bytes(
                value for value in pixels for _ in range(3)
            )
            labels.append(f"{name}\t{json.dumps(boxes)}\n")
        files[f"{folder}/{kind}_icdar2015_label.txt"] = "".join(labels).encode()
    return archive(files)


def facades() -> bytes:
    """Return an archive like pix2pix_facade_lite.tar of PaddleGAN: pairs of images of 256 x 256 side by side."""
    source = random.Random(7)
    names = ("train/1.jpg", "train/2.jpg", "test/1.jpg")
    # PPM: OpenCV decodes by content, not by file name.
    return archive({f"facades/{name}": b"P6 512 256 255\n" + source.randbytes(3 * 512 * 256) for name in names})


def coco() -> bytes:
    """Return an archive like coco_tipc.tar of PaddleDetection: images of noise with two boxes each, 80 classes."""
    source, width, height = random.Random(7), 320, 240
    files: dict[str, bytes] = {}
    categories = [{"id": number, "name": f"class {number}", "supercategory": "all"} for number in range(1, 81)]
    for kind, count in (("train", 8), ("val", 2), ("test", 2)):
        names = [f"{number:012}.jpg" for number in range(count)]
        for name in names:
            # A PPM: readers decode by content, not by file name.
            pixels = source.randbytes(3 * width * height)
            files[f"coco_tipc/{kind}2017/{name}"] = f"P6 {width} {height} 255\n".encode() + pixels
        if kind == "test":
            continue
        images = [
            {"id": number, "file_name": name, "height": height, "width": width}
            for number, name in enumerate(names)
        ]
        boxes = [_box(2 * image + place, image, place) for image in range(count) for place in range(2)]
        labels = {"images": images, "annotations": boxes, "categories": categories}
        files[f"coco_tipc/annotations/instances_{kind}2017.json"] = json.dumps(labels).encode()
    return archive(files)


def _box(number: int, image: int, place: int) -> dict[str, object]:
    left, top, width, height = 20 + 30 * place, 30, 100, 90
    corners = [left, top, left + width, top, left + width, top + height, left, top + height]
    return {
        "id": number + 1,
        "image_id": image,
        "category_id": 1 + (image + place) % 4,
        "bbox": [left, top, width, height],
        "area": width * height,
        "iscrowd": 0,
        "segmentation": [corners],
    }


def skeletons() -> tuple[bytes, bytes]:
    """Return data and labels like FSD_train_data.npy of PaddleVideo: four skeletons in 300 of 400 frames."""
    data = np.zeros((4, 3, 400, 25, 1), "float32")
    data[:, :, :300] = np.random.default_rng(7).random((4, 3, 300, 25, 1))
    return _npy(data), _npy(np.arange(4, dtype="int64"))


def _npy(values: "np.ndarray[tuple[int, ...], np.dtype[np.generic]]") -> bytes:
    with io.BytesIO() as buffer:
        np.save(buffer, values)
        return buffer.getvalue()

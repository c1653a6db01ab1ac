"""Small archives in place of the data that the scripts of public suites download."""

import io
import random
import tarfile
from collections.abc import Mapping


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
            # A PPM: OpenCV looks at the content, not at the name.
            files[f"whole_chain_little_train/{name}"] = b"P6 256 256 255\n" + source.randbytes(3 * 256 * 256)
    return archive(files)

"""Writes the images that the chain trains on and infers: called by test_tipc/prepare.sh.

python tools/make_data.py --train=128 --val=60 --images=20
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mobilenet.arguments import parse, positive

# Counts up when the same numbers of images would look different.
VERSION = 2
STAMP = ".made"
_TRAIN, _VAL, _IMAGES = 1, 2, 3


def main() -> None:
    """Makes what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=positive, required=True)
    parser.add_argument("--val", type=positive, required=True)
    parser.add_argument("--images", type=positive, required=True)
    args = parse(parser)
    _make(Path("lite_data"), f"version {VERSION}, {args.train} train, {args.val} val\n", _data, args)
    _make(Path("images"), f"version {VERSION}, {args.images} images\n", _images, args)


def _make(target: Path, stamp: str, fill, args: argparse.Namespace) -> None:
    """Fills a temporary folder and renames it: two nodes that share a disk may both prepare."""
    made = target / STAMP
    if made.is_file() and made.read_text(encoding="utf-8") == stamp:
        print(f"{target}: there already ({stamp.strip()})")
        return
    part = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir="."))
    try:
        part.chmod(0o755)
        fill(part, args)
        (part / STAMP).write_text(stamp, encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        part.rename(target)
    except OSError:
        if not made.is_file() or made.read_text(encoding="utf-8") != stamp:
            raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
    print(f"{target}: made ({stamp.strip()})")


def _data(folder: Path, args: argparse.Namespace) -> None:
    from mobilenet.prototypes import write

    for name, count, part in (("train", args.train, _TRAIN), ("val", args.val, _VAL)):
        lines = [f"{name}/{file} {label}\n" for file, label in write(folder / name, count, part)]
        (folder / f"{name}_list.txt").write_text("".join(lines), encoding="utf-8")


def _images(folder: Path, args: argparse.Namespace) -> None:
    from mobilenet.prototypes import write

    write(folder, args.images, _IMAGES, "{index:04d}_class_{label}.png")


if __name__ == "__main__":
    main()

"""Writes generated images in the file format of MNIST: called by test_tipc/prepare.sh.

python tools/make_data.py --root ./data --train 1024 --test 200
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from multinode.arguments import positive

# Counts up when equal numbers of images would look different.
VERSION = 1
STAMP = ".made"


def main() -> None:
    """Generates the folder, unless it has the same data."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path("../data"))
    parser.add_argument("--train", type=positive, default=2048)
    parser.add_argument("--test", type=positive, default=200)
    args = parser.parse_args()
    stamp = f"version {VERSION}, {args.train} train, {args.test} test\n"
    made = args.root / STAMP
    if made.is_file() and made.read_text(encoding="utf-8") == stamp:
        print(f"{args.root}: already there ({stamp.strip()})")
        return
    if args.root.exists() and not made.is_file():
        print(f"error: {args.root} has other files, which are kept: choose another --root", file=sys.stderr)
        raise SystemExit(2)
    fill(args, stamp)
    print(f"{args.root}: generated ({stamp.strip()})")


def fill(args: argparse.Namespace, stamp: str) -> None:
    """Fills a temporary folder and renames it: two nodes that share a disk may both prepare."""
    from multinode.images import TEST, TRAIN, generate, write

    args.root.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=f".{args.root.name}.", dir=args.root.parent))
    try:
        part.chmod(0o755)
        write(part, TRAIN, generate(args.train, TRAIN))
        write(part, TEST, generate(args.test, TEST))
        (part / STAMP).write_text(stamp, encoding="utf-8")
        shutil.rmtree(args.root, ignore_errors=True)
        part.rename(args.root)
    except OSError:
        made = args.root / STAMP
        if not made.is_file() or made.read_text(encoding="utf-8") != stamp:
            raise
    finally:
        shutil.rmtree(part, ignore_errors=True)


if __name__ == "__main__":
    main()

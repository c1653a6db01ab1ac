"""Input files of `tipcflow parse` and `tipcflow scaling`: plain, gzipped, or stdin."""

import gzip
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from tipcflow.domain import ConfigError

STDIN = "-"
PIECE = 1 << 21  # as `tipcflow.parse.chunks.CHUNK`
_GZIP = b"\x1f\x8b"
_WORKER = re.compile(r"workerlog\.(\d{1,9})(?:\.gz)?$")


def pieces_of(name: str) -> Iterator[bytes]:
    """The bytes of a file, decompressed if it is gzipped.

    Raises:
        ConfigError: the file is missing, a folder, unreadable, or broken gzip.
    """
    try:
        with _opened(name) as file:
            while piece := file.read(PIECE):
                yield piece
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ConfigError(
            f"is broken gzip: {error}", file=name, expected="a complete .gz file, or text"
        ) from error
    except IsADirectoryError as error:
        raise ConfigError("is a folder", file=name, expected=f"files, like {name.rstrip('/')}/*") from error
    except OSError as error:
        raise ConfigError(
            f"cannot be read: {error.strerror or error}", file=name, expected="a readable log"
        ) from error


def _opened(name: str) -> IO[bytes]:
    if name == STDIN:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    path = Path(name)
    with path.open("rb") as file:
        zipped = file.read(2) == _GZIP
    return gzip.open(path, "rb") if zipped else path.open("rb")  # type: ignore[return-value]


def rank_of(name: str) -> int:
    """The rank in a file's name (`workerlog.3`); -1 if the name has none."""
    match = _WORKER.search(name)
    return int(match[1]) if match else -1

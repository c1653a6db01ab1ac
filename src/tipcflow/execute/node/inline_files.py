"""Small files of a job that are transferred with its end."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class InlineFiles:
    """Files that need not be fetched.

    Attributes:
        job: name relative to the job's folder -> content, None if the file does not exist.
        root: the same, relative to the suite's root.
    """

    job: Mapping[str, bytes | None] = field(default_factory=dict)
    root: Mapping[str, bytes | None] = field(default_factory=dict)


NO_INLINE_FILES = InlineFiles()


def unpack(message: Mapping[str, Any]) -> InlineFiles:
    """Unpack the runner's event `files`. Files whose content differs from the node's CRC-32 are left out."""
    return InlineFiles(job=_files(message.get("job")), root=_files(message.get("root")))


def _files(packed: Any) -> dict[str, bytes | None]:
    files: dict[str, bytes | None] = {}
    for name, file in dict(packed or {}).items():
        if file is None:
            files[str(name)] = None
            continue
        crc, text = file
        try:
            data = base64.b64decode(text, validate=True)
        except ValueError:
            continue
        if binascii.crc32(data) == crc:
            files[str(name)] = data
    return files

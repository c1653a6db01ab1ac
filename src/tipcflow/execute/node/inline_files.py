"""Small files of a job that are transferred with its end."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Sent:
    """Files that need not be fetched.

    Attributes:
        job: name relative to the job's folder -> content, None if the file does not exist.
        root: the same, relative to the suite's root.
    """

    job: Mapping[str, bytes | None] = field(default_factory=dict)
    root: Mapping[str, bytes | None] = field(default_factory=dict)


NOTHING_SENT = Sent()


def unpack(message: Mapping[str, Any]) -> Sent:
    """Unpack the runner's event `files`. Files whose content differs from the node's CRC-32 are left out."""
    return Sent(job=_files(message.get("job")), root=_files(message.get("root")))


def _files(packed: Any) -> dict[str, bytes | None]:
    found: dict[str, bytes | None] = {}
    for name, file in dict(packed or {}).items():
        if file is None:
            found[str(name)] = None
            continue
        crc, text = file
        try:
            data = base64.b64decode(text, validate=True)
        except ValueError:
            continue
        if binascii.crc32(data) == crc:
            found[str(name)] = data
    return found

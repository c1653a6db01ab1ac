"""Inline transfer of the small files that a job leaves, with its end event: separate fetches take longer than
many jobs."""

from __future__ import annotations

import binascii
import os

from .files import Json, kind_of, load, log_name, open_regular
from .outputs import is_secret

MAX_BYTES = 96 * 1024  # limit of all files together, bytes; larger files are fetched
RECORDS = (
    "samples.jsonl",
    "exit.json",
    "legs.jsonl",
    "runner.log",
    "evidence.json",
    "artefacts.json",
    "before.json",
    "opened.txt",
)


def pack_inline_files(folder: str, spec: Json) -> Json:
    """Return `job` (the job's folder) and `root` (the suite's) -> name -> [CRC-32, Base64], or null for a
    missing file.

    A name that is not included was not checked. Links do not count as files, and files that may contain
    secrets are excluded.
    """
    seen = load(os.path.join(folder, "evidence.json")) or {}
    artefacts = load(os.path.join(folder, "artefacts.json")) or []
    commands = spec["commands"]
    logs = [log_name(command["leg"]) for command in commands]
    own = [os.path.normpath(command["log"]) for command in commands if command.get("log")]
    written = [one["path"] for one in artefacts if one.get("exists") and one.get("fresh")]
    room = MAX_BYTES
    packed: Json = {}
    wanted = (("job", folder, [*RECORDS, *logs, *seen.get("files", [])]), ("root", spec["root"], [*own, *written]))
    for key, root, names in wanted:
        packed[key] = {}
        for name in names:
            path = os.path.join(root, name)
            if name in packed[key] or is_secret(name):
                continue
            try:
                size = regular_size(path)
                if 0 <= size <= room:
                    with open_regular(path, follow=False) as handle:
                        data = handle.read(room + 1)
                    if len(data) <= room:
                        room -= len(data)
                        text = binascii.b2a_base64(data, newline=False).decode()
                        packed[key][name] = [binascii.crc32(data), text]
            except FileNotFoundError:
                packed[key][name] = None
            except OSError:
                continue  # fetching the file reports the reason
    return packed


def regular_size(path: str) -> int:
    """Return the size of a regular file, -1 for anything else."""
    found = os.lstat(path)
    return -1 if kind_of(found.st_mode) else found.st_size

"""Records which files of the suite the Python processes of a job open; read by the selection of chains.

The runner copies this file into the job's folder, where `sitecustomize` loads it in every Python process.
It installs an audit hook (Python 3.8 and newer), which only reads: an exception in it never reaches the process.
Each new path is appended at once, because processes of a gang are killed; no file stays open between, because a
process may close or replace any file descriptor.
"""

from __future__ import annotations

import os
import sys

NAME = "opened.txt"
# Code, configs and lists. Data has other names, and there may be a million of them.
SUFFIXES = (
    ".py", ".pyc", ".yaml", ".yml", ".json", ".txt", ".toml", ".ini", ".cfg", ".sh", ".csv", ".tsv", ".proto",
)  # fmt: skip
MOST, MOST_BYTES = 4000, 4_000_000
MORE = "!more"  # marks that files are missing
WRITES = os.O_WRONLY | os.O_RDWR
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def source_of(path: str) -> str:
    """Return the source file of a compiled one, and any other path as it is."""
    if not path.endswith(".pyc"):
        return path
    folder, name = os.path.split(path)
    if os.path.basename(folder) == "__pycache__":
        folder = os.path.dirname(folder)
    return os.path.join(folder, name.split(".")[0] + ".py")


class Recorder:
    """Appends each path of the suite that this process and its forks open, once.

    Args:
        place: the file of the records.
        root: the suite's folder; nothing outside is recorded.
    """

    def __init__(self, place: str, root: str) -> None:
        self.place = place
        self.known: set[str] = set()
        self.roots = tuple({os.path.join(os.path.abspath(root), ""), os.path.join(os.path.realpath(root), "")})

    def append(self, line: str) -> None:
        """Append a line, unless the file is too long."""
        handle = os.open(self.place, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            if os.fstat(handle).st_size < MOST_BYTES:
                os.write(handle, (line + "\n").encode("utf-8", "surrogateescape"))
        finally:
            os.close(handle)

    def note(self, path: Any, folder: Any = None) -> None:
        """Record a path that is a file of the suite by its name.

        Args:
            folder: of a relative path; None: the working directory.
        """
        path = os.fsdecode(path)
        if not path.endswith(SUFFIXES) or path in self.known or len(self.known) > MOST:
            return
        whole = os.path.normpath(os.path.join(folder or os.getcwd(), path))
        start = next((root for root in self.roots if whole.startswith(root)), "")
        if start and "\n" not in whole:
            self.known.add(path)
            self.append(source_of(whole[len(start) :]) if len(self.known) <= MOST else MORE)

    def hook(self, event: str, words: Any) -> None:
        """Called by Python for every audited event."""
        try:
            if event == "open":
                if not isinstance(words[0], int) and not (words[2] or 0) & WRITES:
                    self.note(words[0])
            elif event == "cpython.run_file":
                self.note(words[0])
            elif event == "subprocess.Popen":
                for word in words[1].split() if isinstance(words[1], str) else words[1]:
                    self.note(word, words[2])
        except Exception:
            pass  # the process does what it does without the record


def install(place: str, root: str) -> None:
    """Record what this process and its forks open from now on; see Recorder."""
    add_hook = getattr(sys, "addaudithook", None)
    if add_hook is not None:
        add_hook(Recorder(place, root).hook)


def merge(folder: str) -> None:
    """Sort the records of a job's processes, each path once."""
    path = os.path.join(folder, NAME)
    try:
        with open(path, "rb") as handle:
            text = handle.read(MOST_BYTES + 1)
        lines = sorted(set(text.split(b"\n")) - {b""})
        if len(text) >= MOST_BYTES or len(lines) > MOST:
            lines = [MORE.encode()]
        with open(f"{path}.tmp", "wb") as handle:
            handle.write(b"".join(line + b"\n" for line in lines))
        os.replace(f"{path}.tmp", path)
    except OSError:
        pass  # no record, or a full disk: unsorted is as good

"""Cache of data on a node or a shared folder: filled once under a lock, checked, linked or copied into runs."""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import json
import os
import shutil
import sys
import tarfile
import time
import zipfile
from typing import Any, Dict, List, Set

from .fetching_urls import DownloadFailed, download
from .unmet import DATA, DOWNLOAD, Unusable, failure_of

BLOCK = 1 << 20


def provide(to: str, source: str, cache: str, *, sha256: str, unpack: bool, copy: bool) -> None:
    """Provide the content of a source in folder `to`.

    Raises:
        Unusable: the source cannot be read, has another hash, or its files exist in the suite already.
    """
    if os.path.isdir(source):
        content = source
    elif source.startswith("/") and not unpack and not sha256:
        if not os.path.exists(source):
            raise Unusable(f"Download from {source} failed: no such file or folder on this node", DOWNLOAD)
        content = source
    else:
        content = filled(cache, source, sha256, unpack)
    os.makedirs(to, exist_ok=True)
    if os.path.isdir(content):
        for name in sorted(os.listdir(content)):
            place(os.path.join(content, name), os.path.join(to, name), copy)
    else:
        place(content, os.path.join(to, os.path.basename(content)), copy)
    log(f"{to}: {'copied' if copy else 'linked'} from {content}")


def place(source: str, target: str, copy: bool) -> None:
    """Link or copy one entry; folders that exist on both sides are merged."""
    if os.path.islink(target) and os.path.realpath(target) == os.path.realpath(source):
        return
    if os.path.isdir(source) and os.path.isdir(target) and not os.path.islink(target):
        for name in sorted(os.listdir(source)):
            place(os.path.join(source, name), os.path.join(target, name), copy)
        return
    if copy and os.path.isfile(source) and os.path.isfile(target) and digest(source) == digest(target):
        return
    if os.path.lexists(target):
        raise Unusable(f"{target} is a file of the suite: the data of the suite file would replace it", DATA)
    if not copy:
        os.symlink(source, target)
    elif os.path.isdir(source):
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target)


def filled(cache: str, source: str, sha256: str, unpack: bool) -> str:
    """Return the folder of the source's content in the cache; fill it if it is missing or damaged."""
    key = sha256 or hashlib.sha256(stamp_of(source).encode()).hexdigest()
    folder = os.path.join(cache, "data", key + (".unpacked" if unpack else ""))
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with locked(folder + ".lock"):
        problem = damage(folder)
        if not problem:
            used(os.path.join(folder, "manifest.json"))
            log(f"{source}: in the cache")
            return os.path.join(folder, "content")
        if os.path.isdir(folder):
            log(f"{folder} is damaged ({problem}): the cache is filled again")
        for old in [folder, folder + ".new"]:
            shutil.rmtree(old, ignore_errors=True)
        fill(folder, source, sha256, unpack)
    return os.path.join(folder, "content")


def used(path: str) -> None:
    """Mark an entry of the cache as in use: the retention is based on the time of this file."""
    try:
        os.utime(path, None)
    except OSError:
        pass  # a shared cache that others maintain


def fill(folder: str, source: str, sha256: str, unpack: bool) -> None:
    """Fill one folder of the cache; it appears complete or not at all."""
    new = folder + ".new"
    content = os.path.join(new, "content")
    os.makedirs(content)
    name = os.path.basename(source.split("?")[0].rstrip("/")) or "file"
    file = os.path.join(new, "source") if unpack else os.path.join(content, name)
    started = time.monotonic()
    try:
        download(source, file, sys.stdout)
    except DownloadFailed as error:
        raise Unusable(f"Download from {source} failed: {error}", failure_of(error, DOWNLOAD)) from error
    found = digest(file)
    if sha256 and found != sha256:
        shutil.rmtree(new, ignore_errors=True)
        message = f"Download from {source} failed: its sha256 is {found}, the suite file expects {sha256}"
        raise Unusable(message, DOWNLOAD)
    size = os.path.getsize(file)
    if unpack:
        problem = unpacked(file, content)
        if problem:
            shutil.rmtree(new, ignore_errors=True)
            # A file with the hash of the suite file is what the suite file names; any other may be damaged.
            kind = failure_of(problem, DATA if sha256 else DOWNLOAD)
            raise Unusable(f"{source} cannot be unpacked: {problem}", kind)
        os.remove(file)
    with open(os.path.join(new, "manifest.json"), "w") as handle:
        json.dump({"schema_version": 1, "source": source, "sha256": found, "files": listing(content)}, handle)
    os.rename(new, folder)
    log(f"{source}: {size} bytes in {time.monotonic() - started:.1f} s, sha256 {found}")


def unpacked(archive: str, folder: str) -> str:
    """Unpack a tar or zip archive into a folder; return why it is not possible, '' if it was."""
    try:
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as packed:
                bad = next((name for name in packed.namelist() if outside(name)), "")
                if bad:
                    return f"{bad} is outside of the archive's folder"
                packed.extractall(folder)
            return ""
        with tarfile.open(archive) as opened:
            members = [
                one for one in opened.getmembers() if one.isreg() or one.isdir() or one.issym() or one.islnk()
            ]
            links = {os.path.normpath(one.name) for one in members if one.issym()}
            bad = next((one.name for one in members if outside(one.name) or leads_out(one, links)), "")
            if bad:
                return f"{bad} is outside of the archive's folder"
            # Links last, so that nothing is written through one of them.
            opened.extractall(folder, sorted(members, key=lambda one: (one.issym(), one.islnk())))
        return ""
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, ValueError) as error:
        return str(error) or type(error).__name__


def outside(name: str) -> bool:
    """Return whether a name in an archive leads out of the folder."""
    return name.startswith("/") or ".." in name.split("/")


def leads_out(member: tarfile.TarInfo, links: Set[str]) -> bool:
    """Return whether a member of an archive could be written or lead outside of the archive's folder.

    A chain of symbolic links leads elsewhere than the text of each: no member is below a link, and `..` is only at
    the beginning of a link's target, so that it refers to real folders.

    Args:
        links: paths of all symbolic links of the archive.
    """
    name = os.path.normpath(member.name)
    if is_below(name, links):
        return True
    if member.islnk():
        target = os.path.normpath(member.linkname)
        return outside(member.linkname) or target in links or is_below(target, links)
    if not member.issym():
        return False
    parts = [part for part in member.linkname.split("/") if part not in ("", ".")]
    inner = itertools.dropwhile("..".__eq__, parts)
    return ".." in inner or outside(os.path.normpath(os.path.join(os.path.dirname(name), member.linkname)))


def is_below(name: str, links: Set[str]) -> bool:
    """Return whether one of the folders above a path is one of these links."""
    parts = name.split("/")
    return any("/".join(parts[:count]) in links for count in range(1, len(parts)))


def damage(folder: str) -> str:
    """Return how the files differ from those that were stored; '' for an undamaged folder."""
    try:
        with open(os.path.join(folder, "manifest.json")) as handle:
            known: Dict[str, Any] = json.load(handle)["files"]
    except (OSError, ValueError, KeyError):
        return "incomplete"
    found = listing(os.path.join(folder, "content"))
    differing = sorted(path for path in set(known) | set(found) if known.get(path) != found.get(path))
    return f"{len(differing)} files differ, such as {differing[0]}" if differing else ""


def listing(root: str) -> Dict[str, List[int]]:
    """Return path -> [size, modification time in ns] of all files below a folder."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            stat = os.lstat(path)
            found[os.path.relpath(path, root)] = [stat.st_size, stat.st_mtime_ns]
    return found


def stamp_of(source: str) -> str:
    """Return a text that changes with a file on the node."""
    try:
        stat = os.stat(source)
    except OSError as error:
        raise Unusable(f"Download from {source} failed: {error.strerror}", failure_of(error, DOWNLOAD)) from error
    return f"{source} {stat.st_size} {stat.st_mtime_ns}"


def digest(path: str) -> str:
    """Return the SHA-256 of a file."""
    found = hashlib.sha256()
    with open(path, "rb") as handle:
        for block in iter(lambda: handle.read(BLOCK), b""):
            found.update(block)
    return found.hexdigest()


class locked:  # noqa: N801
    """Exclusive lock on a file, also among nodes that share the file system."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        self._file = open(self._path, "a")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            log(f"waiting for another run that fills {self._path[: -len('.lock')]}")
            fcntl.flock(self._file, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        self._file.close()


def log(text: str) -> None:
    """Print a line to the step's log."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()

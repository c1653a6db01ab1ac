"""`wget` of suites whose downloads are cached: keeps files in the node's cache and uses the node's mirrors."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from typing import Dict, List, NoReturn, Tuple

from .cache import locked, used
from .fetching_urls import DownloadFailed, download, local_headers, local_path, mirrored, opened

CHECK_S = 10.0
# wget's exit codes.
GENERIC, NETWORK, SERVER = 1, 4, 8
SILENT = {"-q", "--quiet", "-nv", "--no-verbose", "--show-progress", "--no-check-certificate", "-c", "--continue"}
SILENT |= {"-N", "--timestamping", "--no-cache"}
WITH_VALUE = {"-t", "--tries", "-T", "--timeout", "--retry-connrefused", "--waitretry"}


def wget(words: List[str]) -> int:
    """Do what `wget` does with these arguments; return its exit code. Other uses of wget run the real one."""
    requested = understood(words)
    if requested is None:
        real(words)
    folder, output, keep, urls = requested
    code = 0
    for url in urls:
        name = output or os.path.basename(url.split("?")[0].split("#")[0]) or "index.html"
        target = name if output else os.path.join(folder, name)
        if keep and os.path.exists(target):
            sys.stderr.write(f"File ‘{target}’ already there; not retrieving.\n")
            continue
        code = code or one(url, target)
    return code


def understood(words: List[str]) -> Tuple[str, str, bool, List[str]] | None:
    """Return folder, output file, whether existing files are kept, and URLs; None for other uses."""
    folder, output, keep, urls = ".", "", False, []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, _, value = word.partition("=")
        if word in ("-P", "-O") and rest:
            folder, output = (rest.pop(0), output) if word == "-P" else (folder, rest.pop(0))
        elif word[:2] in ("-P", "-O") and len(word) > 2:
            folder, output = (word[2:], output) if word[:2] == "-P" else (folder, word[2:])
        elif name in ("--directory-prefix", "--output-document") and value:
            folder, output = (value, output) if name == "--directory-prefix" else (folder, value)
        elif word in ("-nc", "--no-clobber"):
            keep = True
        elif word in WITH_VALUE and rest:
            rest.pop(0)
        elif word.startswith(("http://", "https://")):
            urls.append(word)
        elif word not in SILENT and name not in WITH_VALUE:
            return None
    return (folder, output, keep, urls) if urls and output != "-" else None


def real(words: List[str]) -> NoReturn:
    """Run the node's own wget."""
    own = os.path.join(os.environ.get("TIPCFLOW_RUN", ""), "bin")
    folders = [place for place in os.environ.get("PATH", "").split(":") if place and place != own]
    path = shutil.which("wget", path=":".join(folders))
    if path is None:
        sys.stderr.write("wget: command not found\n")
        sys.exit(127)
    os.execv(path, ["wget", *words])


def one(url: str, target: str) -> int:
    """Provide one file; return wget's exit code."""
    cache = os.environ["TIPCFLOW_CACHE"]
    folder = os.path.join(cache, "downloads", hashlib.sha256(url.encode()).hexdigest())
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    with locked(folder + ".lock"):
        why = outdated(folder, url)
        if why:
            sys.stderr.write(f"{url}: {why}\n")
            shutil.rmtree(folder + ".new", ignore_errors=True)
            os.makedirs(folder + ".new")
            try:
                headers = download(url, os.path.join(folder + ".new", "file"), sys.stderr)
            except DownloadFailed as error:
                return failed(url, error)
            with open(os.path.join(folder + ".new", "meta.json"), "w") as handle:
                size = os.path.getsize(os.path.join(folder + ".new", "file"))
                json.dump({"schema_version": 1, "url": url, "size": size, "marks": marks_of(headers)}, handle)
            shutil.rmtree(folder, ignore_errors=True)
            os.rename(folder + ".new", folder)
        os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
        shutil.copyfile(os.path.join(folder, "file"), target)
        used(os.path.join(folder, "meta.json"))
    sys.stderr.write(f"‘{target}’ saved [{os.path.getsize(target)}]\n")
    return 0


def outdated(folder: str, url: str) -> str:
    """Return why the cached file cannot be used; '' if it can. Without a connection the cached file is used."""
    try:
        with open(os.path.join(folder, "meta.json")) as handle:
            meta = json.load(handle)
        if os.path.getsize(os.path.join(folder, "file")) != meta["size"]:
            return "the cached file is damaged"
    except (OSError, ValueError, KeyError):
        return "not in the cache"
    place = mirrored(url)
    path = local_path(place)
    if path:
        return changed_in_mirror(path, meta["marks"], url)
    if not meta["marks"]:
        return ""
    try:
        with opened(place, "HEAD", CHECK_S) as response:
            found = marks_of({name.lower(): value for name, value in response.headers.items()})
    except DownloadFailed as error:
        sys.stderr.write(f"{url}: from the cache; the server does not respond ({error})\n")
        return ""
    if found != meta["marks"]:
        return "the server has a newer file than the cache"
    sys.stderr.write(f"{url}: from the cache\n")
    return ""


def changed_in_mirror(path: str, marks: Dict[str, str], url: str) -> str:
    """Return why a cached file differs from that in a mirror's folder; '' if equal, or not in the mirror."""
    try:
        found = local_headers(path)
    except DownloadFailed as error:
        sys.stderr.write(f"{url}: from the cache; not in the mirror ({error})\n")
        return ""
    if found != marks:
        return "the mirror has another file than the cache"
    sys.stderr.write(f"{url}: from the cache\n")
    return ""


def marks_of(headers: Dict[str, str]) -> Dict[str, str]:
    """Return the headers by which a changed file is recognized."""
    return {name: headers[name] for name in ("etag", "last-modified", "content-length") if name in headers}


def failed(url: str, error: DownloadFailed) -> int:
    """Report a failed download like wget does."""
    host = url.split("/")[2]
    if error.code:
        sys.stderr.write(f"wget: {url}: ERROR {error.code}: {error}\n")
        return SERVER
    if error.unknown_host:
        sys.stderr.write(f"wget: unable to resolve host address ‘{host}’\n")
    sys.stderr.write(f"wget: Download from {url} failed: {error}\n")
    return NETWORK

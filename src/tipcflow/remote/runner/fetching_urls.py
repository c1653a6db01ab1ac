"""Downloads of a node, through the mirrors of the cluster file."""

from __future__ import annotations

import json
import os
import shutil
from typing import Any, Dict, TextIO

TIMEOUT_S = 60.0


class DownloadFailed(Exception):
    """The server cannot be reached, or refuses.

    Attributes:
        code: its HTTP status, 0 without one.
        unknown_host: whether the name of the server cannot be resolved.
    """

    def __init__(self, message: str, code: int = 0, *, unknown_host: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.unknown_host = unknown_host


def mirrored(url: str) -> str:
    """Return the URL or the path of a folder that replaces it on this node; the longest prefix counts."""
    mirrors: Dict[str, str] = json.loads(os.environ.get("TIPCFLOW_MIRRORS") or "{}")
    for prefix in sorted(mirrors, key=len, reverse=True):
        if url.startswith(prefix):
            return mirrors[prefix].rstrip("/") + "/" + url[len(prefix) :].lstrip("/")
    return url


def local_path(place: str) -> str:
    """Return the path of a mirror that is a folder on this node; '' for a URL."""
    path = place[len("file://") :] if place.startswith("file://") else place
    return path if path.startswith("/") else ""


def local_headers(path: str) -> Dict[str, str]:
    """Return size and date of a file like the headers of a server.

    Raises:
        DownloadFailed: the file cannot be read.
    """
    try:
        info = os.stat(path)
    except OSError as error:
        raise DownloadFailed(f"{path}: {error.strerror}", 404) from error
    return {"content-length": str(info.st_size), "last-modified": str(info.st_mtime_ns)}


def download(url: str, file: str, log: TextIO) -> Dict[str, str]:
    """Write the content of a URL or of a local path into a file; return the server's headers, in lower case, or
    size and date of the path.

    Raises:
        DownloadFailed: it cannot be fetched completely.
    """
    place = mirrored(url)
    if place != url:
        log.write(f"{url}: from the mirror {place}\n")
    path = local_path(place)
    if path:
        headers = local_headers(path)
        try:
            shutil.copyfile(path, file)
        except OSError as error:
            raise DownloadFailed(f"{path}: {error.strerror}", 404) from error
        return headers
    with opened(place) as response:
        headers = {name.lower(): value for name, value in response.headers.items()}
        try:
            with open(file, "wb") as handle:
                shutil.copyfileobj(response, handle, 1 << 20)
        except OSError as error:
            raise DownloadFailed(f"<urlopen error {error}>") from error
    length = headers.get("content-length")
    if length and length.isdigit() and int(length) != os.path.getsize(file):
        raise DownloadFailed(f"{os.path.getsize(file)} of {length} bytes were sent")
    return headers


def opened(url: str, method: str = "GET", timeout: float = TIMEOUT_S) -> Any:
    """Open a URL.

    Raises:
        DownloadFailed: the server cannot be reached, or refuses.
    """
    import http.client
    import socket
    import urllib.error
    import urllib.request

    try:
        return urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=timeout)
    except urllib.error.HTTPError as error:
        raise DownloadFailed(f"ERROR {error.code}: {error.reason}", error.code) from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.URLError):
            raise DownloadFailed(str(error), unknown_host=isinstance(error.reason, socket.gaierror)) from error
        raise DownloadFailed(f"<urlopen error {error}>") from error

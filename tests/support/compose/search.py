"""The search for secrets in what the containers of a deployment write, in memory of one block at a time."""

import gzip
import os
import re
import subprocess
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO
from urllib.parse import quote

from tests.support.compose.deployment import Deployment

_BLOCK = 1 << 22
_BYTEA = re.compile(rb"\\\\x((?:[0-9a-f]{2})+)")


def secrets_of(deployment: Deployment) -> dict[str, str]:
    """The secrets of .secrets, by file name: of a private key, a line that the public key lacks."""
    folder = deployment.folder / ".secrets"
    # Public, and without passwords.
    files = [path for path in folder.rglob("*") if path.is_file()]
    files = [path for path in files if path.name not in ("signing_key_pub", "roles.yaml")]
    texts = {path.name: path.read_text().strip() for path in files}
    return {name: (text.splitlines()[-2] if "\n" in text else text).split()[-1] for name, text in texts.items()}


def forms(secret: str) -> set[bytes]:
    """A secret as it is, quoted for URLs, and in base64: alone, and as a part of a longer text."""
    found = {secret.encode(), quote(secret, safe="").encode()}
    for before in range(3):
        # Without the characters that depend on the text before and after it.
        text = b64encode(b"\0" * before + secret.encode())
        whole = (before + len(secret.encode())) * 8 // 6
        part = text[(0, 2, 3)[before] : whole]
        found |= {part, part.replace(b"+", b"-").replace(b"/", b"_")}
    return found


class Search:
    """Finds words, given by name, in files and in output of programs."""

    def __init__(self, words: Mapping[str, str]) -> None:
        self._forms = [(name, form) for name, word in words.items() for form in forms(word)]
        self._overlap = max(len(form) for _, form in self._forms)

    def blocks(self, blocks: Iterable[bytes]) -> set[str]:
        """The names of the words in the blocks, or across two of them."""
        found, end = set(), b""
        for block in blocks:
            text = end + block
            found |= {name for name, form in self._forms if form in text}
            end = text[-self._overlap :]
        return found

    def file(self, path: Path) -> set[str]:
        """Of a file, and if it is compressed, of its content; none if the file no longer exists."""
        found: set[str] = set()
        with suppress(FileNotFoundError, ProcessLookupError):
            with path.open("rb") as file:
                found |= self.blocks(_read(file))
            with suppress(gzip.BadGzipFile, EOFError, zlib.error), gzip.open(path) as unpacked:
                found |= self.blocks(_read(unpacked))
        return found

    def folder(self, folder: Path, leave_out: str = "") -> dict[str, set[str]]:
        """Of all files of a folder except those of a subfolder: path -> names found."""
        found = {}
        for parent, folders, files in os.walk(folder):
            folders[:] = [name for name in folders if name != leave_out or parent != str(folder)]
            for path in (Path(parent, name) for name in files):
                if path.is_file() and not path.is_symlink() and (names := self.file(path)):
                    found[str(path)] = names
        return found

    def output(self, deployment: Deployment, *words: str, seconds: int = 300) -> set[str]:
        """Of what a `docker` command writes to stdout and stderr, and of values of type bytea in it.

        Raises:
            AssertionError: the command failed, or took longer.
        """
        command = ["timeout", str(seconds), "docker", *words]
        with subprocess.Popen(
            command, env=deployment.engine.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as done:
            assert done.stdout is not None
            found = self.blocks(part for line in done.stdout for part in (line, *_values(line)))
        assert done.returncode == 0, f"{' '.join(words)}: exit code {done.returncode}"
        return found


def _read(file: "IO[bytes] | gzip.GzipFile") -> Iterator[bytes]:
    while block := file.read(_BLOCK):
        yield block


def _values(line: bytes) -> Iterator[bytes]:
    """The values of type bytea in a line of pg_dump, and what the compressed ones contain."""
    for match in _BYTEA.finditer(line):
        value = bytes.fromhex(match[1].decode())
        yield value
        with suppress(zlib.error):
            # wbits: zlib or gzip.
            yield zlib.decompress(value, wbits=47)


def namespaces(deployment: Deployment, services: Iterable[str]) -> dict[str, str]:
    """The namespaces of processes of all containers of services -> service."""
    found = {}
    for service in services:
        for container in deployment.containers(service):
            first = deployment.engine.run("inspect", "--format", "{{.State.Pid}}", container)
            found[str(Path("/proc", first, "ns/pid").readlink())] = service
    return found


def processes(services: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
    """(service and program, command line and environment) of the processes in namespaces."""
    for folder in Path("/proc").glob("[0-9]*"):
        # A sandbox may close processes of the machine to root, such as its first; those of containers are open.
        with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if service := services.get(str((folder / "ns/pid").readlink())):
                command = (folder / "cmdline").read_bytes()
                # A NUL ends each word.
                name = f"{service}: {command.partition(bytes(1))[0].decode(errors='replace')}"
                yield name, command + (folder / "environ").read_bytes()

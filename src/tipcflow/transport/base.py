"""The protocol of connections to nodes."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tipcflow.remote.fetching import Listed


@dataclass(frozen=True)
class Completed:
    """The result of a remote command. `exit_code` is -1 if it was ended by a signal."""

    exit_code: int
    stdout: bytes
    stderr: bytes


class Transport(Protocol):
    """A connection to one node. Several threads may use it at once.

    Every method raises InfraError with the node's name if the connection or the node fails.
    """

    def run(self, command: str, *, input: bytes | None = None, timeout: float = 60.0) -> Completed:  # noqa: A002
        """Run a command to its end.

        Args:
            input: its stdin; None: empty.
            timeout: limit for the whole command, seconds.
        """
        ...

    def stream(
        self,
        command: str,
        *,
        input: bytes = b"",  # noqa: A002
        timeout: float = 30.0,
        first: float = 0.0,
    ) -> AbstractContextManager[Iterator[bytes]]:
        """Run a command and yield its output line by line, without line ends.

        The iterator ends with the command's output; leaving the context closes the remote command's channel.

        Args:
            input: its stdin, which the command reads completely before its first output.
            timeout: maximum silence of the node, seconds.
            first: maximum time until the first output, if longer.
        """
        ...

    def put(self, data: bytes | Path, remote: str, *, mode: int = 0o644, timeout: float = 300.0) -> None:
        """Write a file on the node atomically; creates its folder if necessary.

        Args:
            data: content, or a local file.
        """
        ...

    def get(
        self,
        remote: str,
        local: Path | None = None,
        *,
        offset: int = 0,
        limit: int | None = None,
        timeout: float = 300.0,
    ) -> bytes:
        """Return a file's bytes from `offset`, at most `limit`; with `local`, write them there and return b''.

        Raises:
            FileNotFoundError: the file does not exist on the node.
        """
        ...

    def get_more(self, remote: str, local: Path, *, limit: int, timeout: float = 300.0) -> None:
        """Append a file's bytes to `local`, starting at its current size, until it has `limit` bytes.

        Bytes that arrived before an error stay, so that another call resumes there.

        Raises:
            FileNotFoundError: the file does not exist on the node.
        """
        ...

    def get_many(
        self, root: str, names: Sequence[str], local: Path, *, limit: int, timeout: float = 300.0
    ) -> dict[str, Listed]:
        """List files below `root`, and fetch the small ones into the folder `local` in one command.

        Links and launcher files that may contain secrets are neither listed nor fetched.

        Args:
            limit: number of bytes that the hashes cover; larger files are only listed.

        Returns:
            name -> size and SHA-256 of the existing files. Check which of them arrived; unreadable files have
                `Listed.readable` False.
        """
        ...

    def close(self) -> None:
        """Close the connection. May be called twice."""
        ...

"""The one way to reach a node."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tipcflow.remote.fetching import Listed


@dataclass(frozen=True)
class Completed:
    """What a remote command left. `exit_code` is -1 when it was ended by a signal."""

    exit_code: int
    stdout: bytes
    stderr: bytes


class Transport(Protocol):
    """A connection to one node. Several threads may use it at once.

    Every method raises InfraError, which names the node, when the connection or the node fails.
    """

    def run(self, command: str, *, input: bytes | None = None, timeout: float = 60.0) -> Completed:  # noqa: A002
        """Run a command to its end.

        Args:
            input: its stdin; None is empty.
            timeout: seconds for all of it.
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
            input: its stdin, all of which the command reads before it says anything.
            timeout: seconds that the node may be silent.
            first: as long it may be before its first word, if that is longer.
        """
        ...

    def put(self, data: bytes | Path, remote: str, *, mode: int = 0o644, timeout: float = 300.0) -> None:
        """Write a file on the node: all of it or nothing, its folder made if need be.

        Args:
            data: its content, or a local file.
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
        """A file's bytes from `offset` on, at most `limit`; into `local`, if given (then b'' is returned).

        Raises:
            FileNotFoundError: there is no such file on the node.
        """
        ...

    def get_more(self, remote: str, local: Path, *, limit: int, timeout: float = 300.0) -> None:
        """Append a file's bytes to `local`, from behind what is there on, until that has `limit` bytes.

        What arrived before an error stays, so that another call goes on there.

        Raises:
            FileNotFoundError: there is no such file on the node.
        """
        ...

    def get_many(
        self, root: str, names: Sequence[str], local: Path, *, limit: int, timeout: float = 300.0
    ) -> dict[str, Listed]:
        """List files below `root`, and fetch the small ones into the folder `local` in one go.

        Links and launcher files that may hold secrets are neither listed nor fetched.

        Args:
            limit: bytes that their hashes are of; larger files are listed only.

        Returns:
            name -> size and SHA-256, of those that are there; which of them arrived is to be looked at, and which
            may not be read there is said (`Listed.readable`).
        """
        ...

    def close(self) -> None:
        """End the connection. May be called twice."""
        ...

"""The protocol of connections to nodes in an event loop, for Airflow's triggerer. Timeouts are the caller's."""

from collections.abc import AsyncGenerator
from typing import Protocol

from tipcflow.transport.base import Completed


class AsyncTransport(Protocol):
    """A connection to one node.

    Every method raises an exception if the connection or the node fails; InfraError names the node.
    """

    async def run(self, command: str, *, check: bool = False) -> Completed:
        """Run a command to its end; its stdin is empty.

        Args:
            check: whether an exit code other than 0 is an InfraError.
        """
        ...

    def lines(self, command: str, *, silence_s: float) -> AsyncGenerator[bytes, None]:
        """Run a command and yield its output line by line; closing the iterator ends the command's channel.

        Args:
            silence_s: maximum silence of the node, seconds; then TimeoutError.
        """
        ...

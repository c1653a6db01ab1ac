"""The connection to one node: opened on first use or ahead of it, and reopened when it breaks."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from tipcflow.config.waits import Waits
from tipcflow.domain import InfraError, Node
from tipcflow.transport import Transport
from tipcflow.transport.connect import connect as connect_from_here

T = TypeVar("T")
# Connects to a node: the CLI through the user's OpenSSH configuration, a scheduler through its connections.
Connect = Callable[[Node], Transport]

# Interval between connection attempts to a lost node; number of attempts for one command.
RECONNECT_EVERY_S = 1.0
TRIES = 3


class NodeLink:
    """The connection to one node, reopened when it breaks. Methods raise InfraError, which names the node.

    Args:
        silence_s: a connection without data for this long while a job is watched counts as broken.
        reconnect_s: time to reconnect to a node that was reached before, for any command.
        reached_before: whether another process of the same run has reached the node.
    """

    def __init__(
        self,
        node: Node,
        connect: Connect = connect_from_here,
        *,
        silence_s: float = Waits().silence_s,
        reconnect_s: float = 0.0,
        reached_before: bool = False,
    ) -> None:
        self._silence_s = silence_s
        self._reconnect_s = reconnect_s
        self._reached = reached_before
        self._down_since = 0.0
        self._node = node
        self._connect = connect
        self._transport: Transport | None = None
        self._was_connected = False
        self._reconnecting = threading.RLock()
        self._ahead: Future[Transport] | None = None

    @property
    def node(self) -> Node:
        """The node of this session."""
        return self._node

    @property
    def transport(self) -> Transport:
        """The open connection."""
        if self._transport is None:
            ahead, self._ahead = self._ahead, None
            if ahead:
                self._transport = ahead.result()
                self._was_connected = True
            else:
                self.open_again(None)
        assert self._transport is not None
        return self._transport

    def connect_ahead(self) -> None:
        """Start to connect in the background; the first command waits for the connection and receives its
        error."""
        connecting: Future[Transport] = Future()

        def connect() -> None:
            try:
                connecting.set_result(self._connect(self._node))
            except BaseException as error:
                connecting.set_exception(error)

        self._ahead = connecting
        threading.Thread(target=connect, name=f"connect-{self._node.name}", daemon=True).start()

    @property
    def was_connected(self) -> bool:
        """Whether the session was ever connected: the node may then have files or processes of the run."""
        return self._was_connected

    def mark_used(self) -> None:
        """Record that another process has used the node: it may have files or processes of the run."""
        self._was_connected = True

    def close(self) -> None:
        """Close the connection; the next command opens a new one."""
        if self._ahead is not None:
            self._ahead.add_done_callback(_close_late)
            self._ahead = None
        if self._transport is not None:
            self._transport.close()
            self._transport = None

    def retry_once(self, do: Callable[[Transport], T], *, patience_s: float = float("inf")) -> T:
        """Run an operation over the connection, and again over a new connection if it broke.

        Every operation may run twice: files are written atomically, and a started job is found again.

        Args:
            patience_s: less than `reconnect_s` for operations that should not wait that long.
        """
        for left in reversed(range(TRIES)):
            if self._transport is None and self._ahead is None:
                self.open_again(None, patience_s=patience_s)
            used = self.transport
            try:
                return do(used)
            except InfraError:
                if not left:
                    raise
                self.open_again(used, patience_s=patience_s)
        raise AssertionError("unreachable")

    def open_again(self, used: Transport | None, *, patience_s: float = float("inf")) -> None:
        """Replace `used` by a new connection, unless another thread has done so.

        A node that was reached before may be away for a moment: connecting is retried until the reconnect
            deadline, counted from its first failure.
        """
        until = min(self._reconnect_s, patience_s) if self._was_connected or self._reached else 0.0
        # Not tenacity: another thread may have connected, and the deadline is counted over several calls.
        while True:
            with self._reconnecting:
                if self._transport is not None and self._transport is not used:
                    return
                try:
                    self.close()
                    self._transport = self._connect(self._node)
                    self._was_connected, self._down_since = True, 0.0
                    return
                except InfraError as error:
                    self._down_since = self._down_since or time.monotonic()
                    if not error.passing or time.monotonic() - self._down_since >= until:
                        raise
            time.sleep(RECONNECT_EVERY_S)


def _close_late(connecting: "Future[Transport]") -> None:
    """Close a connection that is no longer awaited."""
    if connecting.exception() is None:
        connecting.result().close()

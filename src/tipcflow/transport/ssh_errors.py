"""Explains failed SSH logins; the same words for addresses from ssh_config and from Airflow connections."""

import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import paramiko
from tenacity import Retrying, retry_if_exception_type, stop_before_delay, wait_exponential, wait_random

from tipcflow.domain import InfraError
from tipcflow.domain.numbers.units import limit

_Client = TypeVar("_Client")
# Random also at its longest: concurrent logins must not return to a full server together.
_PAUSE = wait_exponential(multiplier=0.15, max=1.5) + wait_random(0.0, 0.5)


class UnknownHostKeyError(paramiko.SSHException):
    """The server's host key is not among the known ones."""

    def __init__(self, key: paramiko.PKey) -> None:
        super().__init__("unknown host key")
        self.key = key


class DroppedError(Exception):
    """The server closed the connection before its banner, as sshd does beyond `MaxStartups`."""


@dataclass(frozen=True)
class Route:
    """How a login reaches a node, and what a user does about each problem.

    Attributes:
        node: the node's name.
        where: user@host:port.
        host: the host's name or address.
        timeout_s: limit of the TCP connection.
        known_in: where known host keys are configured.
        credentials: what the login offers, for example key files; '' if unknown.
        proxy: the proxy command; '' for none.
        fix_address, fix_login: what to do about a wrong address or a refused login.
        fix_unknown_key, fix_changed_key: what to do about an unknown or a changed host key.
    """

    node: str
    where: str
    host: str
    timeout_s: float
    known_in: str
    fix_address: str
    fix_login: str
    fix_unknown_key: str
    fix_changed_key: str
    credentials: str = ""
    proxy: str = ""

    def error(self, message: str, hint: str, *, passing: bool = False) -> InfraError:
        """The error of a problem with this node. `passing`: whether another attempt may succeed."""
        return InfraError.of_node(self.node, message, hint=hint, passing=passing)


def patient_login(login: Callable[[], _Client], route: Route, *, patience_s: float) -> _Client:
    """Return the result of `login`, retried while the server drops connections before its banner.

    Raises:
        InfraError: names the node, the problem and the fix.
    """

    def attempt() -> _Client:
        """One login, with its error explained."""
        try:
            return login()
        except Exception as error:
            explained = explain(error, route)
            if explained is error:
                raise
            raise explained from error

    retrying = Retrying(
        retry=retry_if_exception_type(DroppedError),
        wait=_PAUSE,
        stop=stop_before_delay(patience_s),
        reraise=True,
    )
    try:
        return retrying(attempt)
    except DroppedError as error:
        raise dropped(error, route) from error


def dropped(error: DroppedError, route: Route) -> InfraError:
    """Return the error of a login that is not repeated although the server dropped the connection."""
    return route.error(
        f"{route.where} closes the connection before its banner ({error})",
        "too many concurrent logins (sshd's MaxStartups), or not an SSH server",
        passing=True,
    )


def explain(error: BaseException, route: Route, *, connected: bool = False) -> BaseException:
    """Return the error to raise for a failed login.

    Args:
        connected: whether the TCP connection existed already.

    Returns:
        InfraError with the node, the problem and the fix; DroppedError if the login may be repeated at once;
        errors unrelated to SSH (an interrupt) and explained errors unchanged.
    """
    if isinstance(error, InfraError | DroppedError):
        return error
    if isinstance(error, paramiko.ssh_exception.NoValidConnectionsError):
        return explain(next(iter(error.errors.values())), route)
    if isinstance(error, paramiko.ProxyCommandFailure) or (_is_dropped(error) and route.proxy):
        return route.error(
            f"no SSH server responds through: {route.proxy}", "see ProxyCommand or ProxyJump", passing=True
        )
    failure = _of_host_key(error, route) or _of_login(error, route)
    if failure is None and not connected:
        failure = _of_network(error, route)
    return failure or _of_session(error, route)


def _of_host_key(error: BaseException, route: Route) -> InfraError | None:
    where = route.where
    if isinstance(error, UnknownHostKeyError):
        what = f"the host key of {where} ({error.key.get_name()} {error.key.fingerprint})"
        return route.error(f"{what} is not in {route.known_in}", route.fix_unknown_key)
    if isinstance(error, paramiko.BadHostKeyException):
        return route.error(
            f"the host key of {where} has changed: {error.key.fingerprint} instead of the known "
            f"{error.expected_key.fingerprint} in {route.known_in}",
            route.fix_changed_key,
        )
    # paramiko's RejectPolicy raises a plain SSHException; asyncssh does not distinguish unknown from changed keys.
    if isinstance(error, paramiko.SSHException) and "not found in known_hosts" in str(error):
        return route.error(f"the host key of {where} is not in {route.known_in}", route.fix_unknown_key)
    if _is_asyncssh(error, "HostKeyNotVerifiable"):
        return route.error(f"the host key of {where} is not the one in {route.known_in}", route.fix_unknown_key)
    return None


def _of_login(error: BaseException, route: Route) -> InfraError | None:
    offered = f" with {route.credentials}" if route.credentials else ""
    if isinstance(error, paramiko.PasswordRequiredException):
        return route.error(f"{route.credentials or 'the private key'} is encrypted", "load it into ssh-agent")
    if _ended_unanswered(error):
        what = f"{route.where} did not respond to the login ({error})"
        return route.error(what, "see the network, and the load of the node", passing=True)
    if isinstance(error, paramiko.AuthenticationException) or _is_asyncssh(error, "PermissionDenied"):
        return route.error(f"{route.where} refuses the login{offered} ({error})", route.fix_login)
    return None


def _ended_unanswered(error: BaseException) -> bool:
    """Whether the server was silent or closed the connection during the login: paramiko raises it as a refusal."""
    is_login = isinstance(error, paramiko.AuthenticationException)
    return is_login and any(words in str(error) for words in ("Authentication timeout", "shut down or saw EOF"))


def _of_network(error: BaseException, route: Route) -> InfraError | None:
    """Errors of the TCP connection."""
    if isinstance(error, socket.gaierror):
        return route.error(f"the host name {route.host} is unknown", route.fix_address)
    if isinstance(error, TimeoutError):
        what = f"{route.where} does not respond within {limit(route.timeout_s)}"
        return route.error(what, "check power and firewall", passing=True)
    if isinstance(error, ConnectionRefusedError):
        what = f"{route.where} refuses connections: no SSH server is running there"
        return route.error(what, "start sshd", passing=True)
    is_drop = isinstance(error, ConnectionError)
    if isinstance(error, OSError) and error.errno and error.filename is None and not is_drop:
        what = f"{route.where} is unreachable: {error.strerror or error}"
        return route.error(what, "see the network", passing=True)
    return None


def _of_session(error: BaseException, route: Route) -> BaseException:
    """Errors between the TCP connection and the end of the login."""
    if _is_dropped(error):
        if not isinstance(error.__context__, TimeoutError):
            return DroppedError(str(error) or type(error).__name__)
        what = f"{route.where} accepts connections but sends no banner"
        return route.error(what, "not an SSH server, or overloaded", passing=True)
    if isinstance(error, TimeoutError) or "No existing session" in str(error):
        return route.error(f"{route.where} did not finish the login in time", "check the load", passing=True)
    protocol = isinstance(error, paramiko.SSHException) or _is_asyncssh(error, "Error")
    if protocol or isinstance(error, OSError | ValueError):
        why = str(error) or type(error).__name__
        return route.error(f"cannot log in to {route.where}: {why}", "", passing=protocol)
    return error


def _is_dropped(error: BaseException) -> bool:
    """Whether the server closed the connection before it sent its SSH banner."""
    if isinstance(error, ConnectionRefusedError):
        return False
    return (
        isinstance(error, EOFError | ConnectionError)
        or "banner" in str(error).lower()
        or _is_asyncssh(error, "ConnectionLost")
    )


def _is_asyncssh(error: BaseException, name: str) -> bool:
    """Whether an error is of that class of asyncssh, which is imported only in Airflow's triggerer."""
    return any(base.__name__ == name and base.__module__.startswith("asyncssh.") for base in type(error).__mro__)

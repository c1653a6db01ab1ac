"""HTTP calls with a deadline: token login, retries with back-off while Airflow is unreachable."""

import ipaddress
import itertools
import time
from typing import Any
from urllib.parse import urlsplit

import httpx
from tenacity import Retrying, retry_if_exception_type, stop_before_delay, wait_exponential

from tipcflow.airflow_api.responses import detail, hint_of, json_of
from tipcflow.domain import ConfigError, InfraError

# Timeout of one attempt; the deadline of a call bounds all attempts together.
_CONNECT_S = 5.0
_TRY_S = 30.0
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 5.0
# Responses of a gateway without a backend, or of an overloaded server.
_NOT_NOW = frozenset({429, 502, 503, 504})
# An error inside Airflow may be transient (a locked SQLite file); a permanent one must not use up the deadline.
_TRIES_OF_500 = 3


class _UnavailableError(Exception):
    """Airflow does not respond now; the call is repeated until its deadline.

    Attributes:
        hint: the remedy, if the response states one.
    """

    def __init__(self, message: str, hint: str = "is its api-server running, and is this its address?") -> None:
        super().__init__(message)
        self.hint = hint


class Http:
    """Calls to one Airflow.

    Args:
        url: its address as in a browser, including a path prefix.
        user, password: for a login, at the first call and whenever the token has expired.
        token: an existing token; it is not renewed.
        deadline_s: maximum seconds of one call, including retries.
        transport: replaces the network in tests.

    Raises:
        ConfigError: an invalid address, an address with a login in it, or a missing or incomplete login.
    """

    def __init__(
        self,
        url: str,
        *,
        user: str | None = None,
        password: str | None = None,
        token: str | None = None,
        deadline_s: float = 60.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        host = _checked(url)
        if not token and not (user and password):
            raise ConfigError("no login for Airflow", expected="a token, or user and password")
        self.url = url.rstrip("/")
        self._user, self._password, self._token = user, password, token
        self._renewable = not token
        self._deadline_s = deadline_s
        # Proxies of the environment are for other machines and cannot reach the loopback address.
        self._client = httpx.Client(trust_env=not _loopback(host), transport=transport)

    def __repr__(self) -> str:
        return f"Http({self.url!r})"

    def close(self) -> None:
        """Close the connections; the token stays valid until Airflow lets it expire."""
        self._client.close()

    def call(
        self,
        method: str,
        path: str,
        *,
        params: dict[str, Any] | None = None,
        json: Any = None,
        deadline_s: float | None = None,
        login: bool = True,
    ) -> httpx.Response:
        """One call, which must be safe to repeat: an attempt without a response is retried.

        Returns:
            The response, unless it requires a retry or a login that is available.

        Raises:
            InfraError: no response within the deadline, or a permanent error inside Airflow.
            ConfigError: the login is rejected, or the address redirects elsewhere.
        """
        until = time.monotonic() + (self._deadline_s if deadline_s is None else deadline_s)
        renewed = False
        while True:
            if login and not self._token:
                self._token = self._log_in(until)
                renewed = True
            response = self._send(method, path, until, params=params, json=json, login=login)
            if not login or not _token_refused(response):
                return response
            if not self._renewable or renewed:
                raise ConfigError(
                    f"Airflow at {self.url} refuses the {'login' if self._renewable else 'token'}",
                    hint="" if self._renewable else "a token expires: get a new one with POST /auth/token",
                )
            self._token = None

    def _log_in(self, until: float) -> str:
        body = {"username": self._user, "password": self._password}
        response = self._send("POST", "/auth/token", until, json=body, login=False)
        if response.status_code in (400, 401, 403, 422):
            raise ConfigError(f"Airflow at {self.url} refuses the login of {self._user!r}")
        token = json_of(response, self.url).get("access_token") if response.is_success else None
        if not isinstance(token, str) or not token:
            raise ConfigError(
                f"{self.url} returned no token (HTTP {response.status_code} of POST /auth/token)",
                hint="is this Airflow 3, with an auth manager that gives tokens?",
            )
        return token

    def _send(
        self,
        method: str,
        path: str,
        until: float,
        *,
        params: dict[str, Any] | None = None,
        json: Any = None,
        login: bool,
    ) -> httpx.Response:
        headers = {"Accept": "application/json"}
        if login:
            headers["Authorization"] = f"Bearer {self._token}"
        errors_500 = itertools.count(1)

        def attempt() -> httpx.Response:
            """Send the request once, within the time that is left."""
            left = until - time.monotonic()
            if left <= 0:
                raise _UnavailableError("no time was left for a request")
            timeout = httpx.Timeout(min(_TRY_S, left), connect=min(_CONNECT_S, left))
            try:
                response = self._client.request(
                    method, self.url + path, params=params, json=json, headers=headers, timeout=timeout
                )
            except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
                raise ConfigError(f"not an address: {self.url}: {error}") from error
            except httpx.HTTPError as error:
                raise _UnavailableError(str(error) or type(error).__name__) from error
            status = response.status_code
            if status in _NOT_NOW or (status == 500 and next(errors_500) < _TRIES_OF_500):
                raise _UnavailableError(f"HTTP {status}: {detail(response)}", hint_of(response))
            return self._seen(response, path)

        retrying = Retrying(
            retry=retry_if_exception_type(_UnavailableError),
            wait=wait_exponential(multiplier=_FIRST_PAUSE_S, max=_LONGEST_PAUSE_S),
            stop=stop_before_delay(until - time.monotonic()),
            reraise=True,
        )
        try:
            return retrying(attempt)
        except _UnavailableError as error:
            raise InfraError(f"Airflow at {self.url} is unavailable: {error}", hint=error.hint) from error

    def _seen(self, response: httpx.Response, path: str) -> httpx.Response:
        if response.is_redirect:
            # Following the redirect would turn a POST into a GET and send the token to another host.
            where = response.headers.get("location", "")
            raise ConfigError(f"{self.url} redirects {path} to {where}", hint="use the redirect target as address")
        if response.status_code >= 500:
            raise InfraError(
                f"Airflow at {self.url} failed at {path}: HTTP {response.status_code}: {detail(response)}"
            )
        return response


def _token_refused(response: httpx.Response) -> bool:
    """An expired token gets 401; one signed with another secret (a reinstalled Airflow) gets 403."""
    return response.status_code == 401 or (response.status_code == 403 and "JWT" in detail(response))


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        login, host, _ = parts.username or parts.password, parts.hostname, parts.port
    except ValueError:
        login, host, parts = None, None, urlsplit("")
    if login:
        # All messages contain the address, so it must not contain a secret; this message omits it.
        raise ConfigError("Airflow URL must not contain credentials", expected="the URL and the login separately")
    if not host or parts.scheme not in ("http", "https") or parts.query or parts.fragment:
        raise ConfigError("not an Airflow URL", found=url, expected="e.g. https://airflow.example.org")
    return host


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

"""One HTTP call with a deadline: retries with back-off while Airflow cannot be reached, login by token."""

import ipaddress
import time
from typing import Any
from urllib.parse import urlsplit

import httpx

from tipcflow.airflow_api.answers import detail, json_of
from tipcflow.domain import ConfigError, InfraError

# One try; the deadline of a call bounds all tries together.
_CONNECT_S = 5.0
_TRY_S = 30.0
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 5.0
# A gateway's way to say that there is nobody behind it, or that it is too much now.
_NOT_NOW = frozenset({429, 502, 503, 504})
# An error inside Airflow may be a locked SQLite file, which passes; a lasting one is not worth the whole deadline.
_TRIES_OF_500 = 3


class Http:
    """Calls to one Airflow.

    Args:
        url: its address as people type it into a browser, with a path when it is served below one.
        user, password: for a login, at the first call and whenever the token has expired.
        token: a token that somebody else has got; it is not renewed.
        deadline_s: seconds that one call may take, retries included.
        transport: instead of the network, for tests.

    Raises:
        ConfigError: an address that is none, one with a login in it, no login or half of one.
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
        # A proxy of the environment is for other machines: on this one it could not reach anybody.
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
        """One call, which must be safe to repeat: a try of which no answer came is made again.

        Returns:
            any answer but those that mean "try again", or "log in" where there is a login to do it with.

        Raises:
            InfraError: no answer within the deadline, or an error inside Airflow that lasts.
            ConfigError: the login is refused, or the address leads elsewhere.
        """
        until = time.monotonic() + (self._deadline_s if deadline_s is None else deadline_s)
        renewed = False
        while True:
            if login and not self._token:
                self._token = self._log_in(until)
                renewed = True
            answer = self._send(method, path, until, params=params, json=json, login=login)
            if not login or not _token_refused(answer):
                return answer
            if not self._renewable or renewed:
                raise ConfigError(
                    f"Airflow at {self.url} refuses the {'login' if self._renewable else 'token'}",
                    hint="" if self._renewable else "a token expires: get a new one with POST /auth/token",
                )
            self._token = None

    def _log_in(self, until: float) -> str:
        body = {"username": self._user, "password": self._password}
        answer = self._send("POST", "/auth/token", until, json=body, login=False)
        if answer.status_code in (400, 401, 403, 422):
            raise ConfigError(f"Airflow at {self.url} refuses the login of {self._user!r}")
        token = json_of(answer, self.url).get("access_token") if answer.is_success else None
        if not isinstance(token, str) or not token:
            raise ConfigError(
                f"{self.url} gives no token (HTTP {answer.status_code} of POST /auth/token)",
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
        pause, broken, why = _FIRST_PAUSE_S, 0, ""
        while (left := until - time.monotonic()) > 0:
            timeout = httpx.Timeout(min(_TRY_S, left), connect=min(_CONNECT_S, left))
            try:
                answer = self._client.request(
                    method, self.url + path, params=params, json=json, headers=headers, timeout=timeout
                )
            except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
                raise ConfigError(f"not an address: {self.url}: {error}") from error
            except httpx.HTTPError as error:
                why = str(error) or type(error).__name__
            else:
                inside = answer.status_code == 500
                broken += inside
                if answer.status_code not in _NOT_NOW and not (inside and broken < _TRIES_OF_500):
                    return self._seen(answer, path)
                why = f"HTTP {answer.status_code}"
            time.sleep(max(0.0, min(pause, until - time.monotonic())))
            pause = min(pause * 2, _LONGEST_PAUSE_S)
        raise InfraError(
            f"Airflow at {self.url} cannot be reached: {why or 'no time was left to ask'}",
            hint="is its api-server running, and is this its address?",
        )

    def _seen(self, answer: httpx.Response, path: str) -> httpx.Response:
        if answer.is_redirect:
            # Followed, a POST would become a GET and the token would go to whoever the answer names.
            where = answer.headers.get("location", "")
            raise ConfigError(f"{self.url} redirects {path} to {where}", hint="give the address that it leads to")
        if answer.status_code >= 500:
            raise InfraError(
                f"Airflow at {self.url} failed at {path}: HTTP {answer.status_code}: {detail(answer)}"
            )
        return answer


def _token_refused(answer: httpx.Response) -> bool:
    """An expired token gets 401; one signed with another secret (Airflow was set up anew) gets 403."""
    return answer.status_code == 401 or (answer.status_code == 403 and "JWT" in detail(answer))


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        login, host, _ = parts.username or parts.password, parts.hostname, parts.port
    except ValueError:
        login, host, parts = None, None, urlsplit("")
    if login:
        # The address is in every message, so that no secret may be in it; this one does not repeat it.
        raise ConfigError("a login in the address of Airflow", expected="address and login apart")
    if not host or parts.scheme not in ("http", "https") or parts.query or parts.fragment:
        raise ConfigError("not the address of Airflow", found=url, expected="e.g. https://airflow.example.org")
    return host


def _loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

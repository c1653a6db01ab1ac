"""Errors of PyGithub as errors of tipcflow."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import requests
from github import GithubException, RateLimitExceededException

from tipcflow.domain import ConfigError, InfraError

# GitHub's advice for a limit without a time.
UNKNOWN_WAIT_S = 60.0
LONGEST_WAIT_S = 3600.0


class LimitedError(InfraError):
    """GitHub rate limit reached; `wait_s` is the requested wait."""

    def __init__(self, message: str, wait_s: float) -> None:
        super().__init__(message, passing=True)
        self.wait_s = wait_s


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Raise tipcflow's errors; their text contains no token.

    Raises:
        InfraError: GitHub is unreachable, limits the rate or fails; `passing` is set: retry later.
        ConfigError: GitHub refuses the request or the login.
    """
    try:
        yield
    except RateLimitExceededException as error:
        raise _limited(error, what) from error
    except GithubException as error:
        status = int(error.status or 0)
        if status == 429 or (status == 403 and "retry-after" in _headers(error)):
            raise _limited(error, what) from error
        if status >= 500 or status in (0, 408):
            raise InfraError(f"GitHub returned {status}: {what}", passing=True) from error
        hint = "see the App's permissions and its installation" if status in (401, 403, 404) else ""
        raise ConfigError(f"GitHub returned {status}: {what}: {_message(error)}", hint=hint) from error
    except (requests.RequestException, OSError) as error:
        raise InfraError(f"GitHub is unreachable ({type(error).__name__}): {what}", passing=True) from error


def _limited(error: GithubException, what: str) -> LimitedError:
    headers = _headers(error)
    try:
        if "retry-after" in headers:
            wait = float(headers["retry-after"])
        elif headers.get("x-ratelimit-remaining") == "0":
            wait = float(headers["x-ratelimit-reset"]) - time.time()
        else:
            wait = UNKNOWN_WAIT_S
    except (KeyError, ValueError):
        wait = UNKNOWN_WAIT_S
    return LimitedError(f"GitHub rate limit reached: {what}", min(max(1.0, wait), LONGEST_WAIT_S))


def _headers(error: GithubException) -> dict[str, str]:
    return {str(name).lower(): str(value) for name, value in (error.headers or {}).items()}


def _message(error: GithubException) -> str:
    data = error.data
    return " ".join(str(data.get("message", "") if isinstance(data, dict) else "").split())[:200]

"""A connected client: the App's key gives a token of the repository's installation, renewed by PyGithub."""

from typing import Any

from github import Auth, Github, GithubIntegration, GithubRetry, RateLimitExceededException

from tipcflow.config.repository import Repository
from tipcflow.github.client.client import Client
from tipcflow.github.client.errors import translated
from tipcflow.github.client.key import require_key

TIMEOUT_S = 15
RETRIES = 5
# 60 writes a minute; GitHub allows 80.
BETWEEN_WRITES_S = 1.0
# PyGithub's own default.
BETWEEN_REQUESTS_S = 0.25
# A longer wait for a rate limit is left to the caller, which holds no worker meanwhile.
LONGEST_WAIT_S = 30.0


class _BriefRetry(GithubRetry):
    """Waits for short limits only."""

    def sleep(self, response: Any = None) -> None:
        """Called by urllib3 before a repetition.

        Raises:
            RateLimitExceededException: GitHub requests to wait longer than `LONGEST_WAIT_S`.
        """
        requested = self.get_retry_after(response) if response is not None else None
        wait = requested if requested is not None else self.get_backoff_time()
        if wait > LONGEST_WAIT_S:
            headers = {"retry-after": f"{wait:.0f}"}
            raise RateLimitExceededException(429, {"message": "rate limit"}, headers)
        super().sleep(response)


def connect(repository: Repository, app_id: str, private_key: str) -> Client:
    """Connect to one repository.

    Args:
        app_id: id of the App.
        private_key: its key in PEM form.

    Raises:
        ConfigError: the key cannot be used or is another App's, or the App is not installed on the repository.
        InfraError: GitHub is unreachable.
    """
    owner, _, name = repository.name.partition("/")
    auth = Auth.AppAuth(app_id, require_key(private_key))
    with translated(f"the App's installation on {repository.name}"):
        app = GithubIntegration(auth=auth, base_url=repository.api_url, timeout=TIMEOUT_S, retry=retry())
        installation = app.get_repo_installation(owner, name).id
        return Client(api(repository.api_url, auth.get_installation_auth(installation)), repository)


def api(url: str, auth: "Auth.Auth | None", *, between_writes_s: float = BETWEEN_WRITES_S) -> Github:
    """PyGithub's client.

    Args:
        between_writes_s: pause between two writes, seconds; reads follow each other after at most that long.
    """
    return Github(
        base_url=url, auth=auth, timeout=TIMEOUT_S, retry=retry(), seconds_between_writes=between_writes_s,
        seconds_between_requests=min(between_writes_s, BETWEEN_REQUESTS_S),
    )  # fmt: skip


def retry() -> GithubRetry:
    """Wait for rate limits, and repeat reads.

    Writes are not repeated: one may have had its effect, and an update of a check run appends its annotations. The
    caller repeats them later, after it has checked the current state.
    """
    return _BriefRetry(total=RETRIES, allowed_methods={"GET"}, backoff_factor=0.2)

"""Requests of the App itself: its webhook's deliveries, its settings and installations."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests
from github import Auth, Github

from tipcflow.github.client.connect import TIMEOUT_S, api
from tipcflow.github.client.errors import translated
from tipcflow.github.client.key import require_key

_PAGE = 100
_MOST_PAGES = 50


@dataclass(frozen=True)
class HookDelivery:
    """One attempt of GitHub to deliver an event; redeliveries have the same `guid`."""

    id: int
    guid: str
    event: str
    status: int
    at: float


class App:
    """The App of a GitHub server. Every method raises ConfigError or InfraError (`passing`: retry later)."""

    def __init__(self, github: Github) -> None:
        self._api = github

    @classmethod
    def of(cls, url: str, app_id: str, private_key: str) -> "App":
        """The App with this id.

        Args:
            url: address of the API.
            private_key: in PEM form.

        Raises:
            ConfigError: the key cannot be used.
        """
        return cls(api(url, Auth.AppAuth(app_id, require_key(private_key))))

    def about(self) -> tuple[dict[str, Any], float | None]:
        """(The App: slug, permissions, events; GitHub's time, seconds since the epoch)."""
        headers, body = self._get("/app")
        return dict(body), _time_of(headers.get("date"))

    def hook(self) -> dict[str, Any]:
        """The webhook's settings; GitHub shows the secret as asterisks."""
        return dict(self._get("/app/hook/config")[1])

    def installation(self, repository: str) -> dict[str, Any]:
        """The installation on a repository: permissions and events."""
        return dict(self._get(f"/repos/{repository}/installation")[1])

    def deliveries(self, since: float) -> Iterator[HookDelivery]:
        """Deliveries after a time (seconds since the epoch), newest first; at most the newest 5,000."""
        path = f"/app/hook/deliveries?per_page={_PAGE}"
        for _ in range(_MOST_PAGES):
            headers, entries = self._get(path)
            for entry in entries:
                at = datetime.fromisoformat(str(entry["delivered_at"])).timestamp()
                if at < since:
                    return
                status = int(entry.get("status_code") or 0)
                yield HookDelivery(int(entry["id"]), str(entry["guid"]).lower(), str(entry["event"]), status, at)
            cursor = _next_cursor(headers.get("link", ""))
            if not cursor:
                return
            path = f"/app/hook/deliveries?per_page={_PAGE}&cursor={cursor}"

    def payload(self, delivery: int) -> Any:
        """The payload of a delivery."""
        body = self._get(f"/app/hook/deliveries/{delivery}")[1]
        payload = (body.get("request") or {}).get("payload")
        return json.loads(payload) if isinstance(payload, str) else payload

    def _get(self, path: str) -> tuple[dict[str, str], Any]:
        with translated(f"GET {urlsplit(path).path}"):
            headers, body = self._api.requester.requestJsonAndCheck("GET", path)
        return {str(name).lower(): str(value) for name, value in headers.items()}, body


def server_time(url: str) -> float | None:
    """GitHub's time, seconds since the epoch, also for a login that it refuses; None if it is unknown.

    Raises:
        InfraError: GitHub is unreachable.
    """
    with translated("its time"):
        return _time_of(requests.get(url, timeout=TIMEOUT_S).headers.get("date"))


def _time_of(date: str | None) -> float | None:
    return parsedate_to_datetime(date).timestamp() if date else None


def _next_cursor(link: str) -> str:
    """The cursor of the next page in a Link header, '' on the last page."""
    for part in link.split(","):
        target, _, relation = part.partition(";")
        if 'rel="next"' in relation:
            return parse_qs(urlsplit(target.strip(" <>")).query).get("cursor", [""])[0]
    return ""

"""Reads and writes of one repository. Writes are safe to repeat: each first looks for its earlier effect."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from github import Github

from tipcflow.config.repository import RANKS, Repository
from tipcflow.github.client.errors import translated
from tipcflow.github.report import Annotation, CheckRun, Issue, batches

_PAGE = 100
# GitHub lists no more files of a pull request.
_MOST_FILES = 3000


@dataclass(frozen=True)
class PullState:
    """The current state of a pull request; `head_repository` is '' for a deleted fork."""

    head_sha: str
    head_repository: str
    base_ref: str
    author: str
    open: bool
    draft: bool
    labels: tuple[str, ...]
    changed_files: int


class Client:
    """One repository. Every method raises ConfigError or InfraError (`passing`: retry later)."""

    def __init__(self, api: Github, repository: Repository) -> None:
        self._api = api
        self._repository = repository
        self._path = f"/repos/{repository.name}"
        self._etags: dict[str, tuple[str, Any]] = {}

    def permission(self, login: str) -> str:
        """The permission of a user: admin, maintain, write, triage, read or none."""
        response = self._get(f"{self._path}/collaborators/{quote(login, safe='')}/permission")
        role = str(response.get("role_name") or "")
        # A custom role of an organization has a name of its own; `permission` is the role that it extends.
        return role if role in RANKS else str(response.get("permission") or "none")

    def pull(self, number: int) -> PullState:
        """The current state of a pull request."""
        response = self._get(f"{self._path}/pulls/{number}")
        head, base = response["head"], response["base"]
        return PullState(
            head_sha=str(head["sha"]),
            head_repository=str((head.get("repo") or {}).get("full_name") or ""),
            base_ref=str(base["ref"]),
            author=str((response.get("user") or {}).get("login") or ""),
            open=response.get("state") == "open",
            draft=bool(response.get("draft")),
            labels=tuple(str(label["name"]) for label in response.get("labels") or ()),
            changed_files=int(response.get("changed_files") or 0),
        )

    def changed_paths(self, number: int, expected: int) -> tuple[tuple[str, ...], bool]:
        """(Changed paths with both names of renamed files, whether these are all).

        Args:
            expected: `PullState.changed_files`.
        """
        paths: dict[str, None] = {}
        count = 0
        for file in self._pages(f"{self._path}/pulls/{number}/files"):
            count += 1
            paths |= {str(file[key]): None for key in ("filename", "previous_filename") if file.get(key)}
        return tuple(paths), count == expected and count < _MOST_FILES

    def publish(self, check: CheckRun) -> int:
        """Create or update the check run of this attempt; returns its id.

        Annotations that an interrupted call has already added are not added again.
        """
        there = self._existing(check)
        sent = int(((there or {}).get("output") or {}).get("annotations_count") or 0)
        parts = batches(check.annotations[sent:]) or [()]
        if there is None:
            made = self._send("POST", f"{self._path}/check-runs", _body(check, parts.pop(0), creates=True))
            there = made
        number = int(there["id"])
        for part in parts:
            self._send("PATCH", f"{self._path}/check-runs/{number}", _body(check, part, creates=False))
        return number

    def comment(self, number: int, marker: str, text: str) -> int:
        """Write the App's comment of a pull request, or edit it in place; returns its id."""
        old = self.own_comment(number, marker)
        if old is None:
            made = self._send("POST", f"{self._path}/issues/{number}/comments", {"body": text})
            return int(made["id"])
        if old["body"] != text:
            self._send("PATCH", f"{self._path}/issues/comments/{old['id']}", {"body": text})
        return int(old["id"])

    def own_comment(self, number: int, marker: str) -> dict[str, Any] | None:
        """The App's comment with this first line, None if there is none."""
        comments = self._pages(f"{self._path}/issues/{number}/comments")
        return next((comment for comment in comments if self._is_own(comment, marker)), None)

    def react(self, comment: int, reaction: str) -> None:
        """Add a reaction to a comment; GitHub keeps one of each kind."""
        self._send("POST", f"{self._path}/issues/comments/{comment}/reactions", {"content": reaction})

    def issue(self, issue: Issue, number: int = 0) -> tuple[int, str]:
        """Create or update an issue of the App; return its number and address.

        Comments and changes of the state that an interrupted call has already made are not made again. Without an
        existing issue, a closed one is not created: (0, '').

        Args:
            number: of the issue; 0 if it is unknown.
        """
        path = f"{self._path}/issues"
        there = self._get(f"{path}/{number}") if number else self._own_issue(issue.marker)
        if there is None:
            if not issue.is_open:
                return 0, ""
            made = self._send("POST", path, {"title": issue.titles[-1], "body": issue.text})
            return int(made["number"]), str(made.get("html_url") or "")
        number, state = int(there["number"]), str(there.get("state") or "")
        changes = {} if there.get("body") == issue.text else {"body": issue.text}
        if there.get("title") in issue.titles[:-1]:
            changes["title"] = issue.titles[-1]
        if changes:
            self._send("PATCH", f"{path}/{number}", changes)
        for note in issue.notes:
            if self.own_comment(number, note.marker) is not None:
                continue
            if note.state and note.state != state:
                reason = {"state_reason": note.reason} if note.reason else {}
                self._send("PATCH", f"{path}/{number}", {"state": note.state, **reason})
                state = note.state
            self._send("POST", f"{path}/{number}/comments", {"body": note.text})
        return number, str(there.get("html_url") or "")

    def _own_issue(self, marker: str) -> dict[str, Any] | None:
        """The App's issue with this first line, None if there is none."""
        path = f"{self._path}/issues?state=all&creator={quote(self._repository.bot, safe='')}"
        return next((issue for issue in self._pages(path) if self._is_own(issue, marker)), None)

    def _is_own(self, entry: dict[str, Any], marker: str) -> bool:
        """Whether the App wrote a comment or an issue that begins with this line."""
        is_own = str((entry.get("user") or {}).get("login") or "").lower() == self._repository.bot.lower()
        return is_own and str(entry.get("body") or "").startswith(marker)

    def _existing(self, check: CheckRun) -> dict[str, Any] | None:
        path = (
            f"{self._path}/commits/{check.head_sha}/check-runs?check_name={quote(check.name, safe='')}&filter=all"
        )
        for check_run in self._pages(path, key="check_runs"):
            if check_run.get("external_id") == check.external_id:
                return check_run
        return None

    def _get(self, path: str) -> dict[str, Any]:
        """A JSON object; an unchanged one costs nothing of the rate limit (ETag)."""
        etag, cached = self._etags.get(path, ("", None))
        headers = {"If-None-Match": etag} if etag else {}
        with translated(f"GET {path}"):
            status, sent, text = self._api.requester.requestJson("GET", path, headers=headers)
            if status == 304:
                return dict(cached)
            _, content = (
                self._api.requester.requestJsonAndCheck("GET", path)
                if status >= 400
                else (None, json.loads(text or "{}"))
            )
        if sent.get("etag"):
            self._etags[path] = (str(sent["etag"]), content)
        return dict(content or {})

    def _pages(self, path: str, *, key: str = "") -> Iterator[dict[str, Any]]:
        page = 1
        joint = "&" if "?" in path else "?"
        while True:
            with translated(f"GET {path}"):
                _, response = self._api.requester.requestJsonAndCheck(
                    "GET", f"{path}{joint}per_page={_PAGE}&page={page}"
                )
            entries: list[Any] = list((response or {}).get(key) or ()) if key else list(response or ())
            yield from (dict(entry) for entry in entries)
            if len(entries) < _PAGE:
                return
            page += 1

    def _send(self, verb: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        with translated(f"{verb} {path}"):
            _, response = self._api.requester.requestJsonAndCheck(verb, path, input=body)
        return dict(response or {})


def _body(check: CheckRun, annotations: tuple[Annotation, ...], *, creates: bool) -> dict[str, Any]:
    output = {
        "title": check.title,
        "summary": check.summary,
        "annotations": [_annotation(annotation) for annotation in annotations],
    }
    body: dict[str, Any] = {
        "status": check.status,
        "output": output,
        "actions": [vars(action) for action in check.actions],
        "external_id": check.external_id,
    }
    if creates:
        body |= {"name": check.name, "head_sha": check.head_sha}
    if check.conclusion is not None:
        body["conclusion"] = check.conclusion.value
    if check.details_url:
        body["details_url"] = check.details_url
    return body


def _annotation(annotation: Annotation) -> dict[str, Any]:
    return {
        "path": annotation.path,
        "start_line": annotation.line,
        "end_line": annotation.line,
        "annotation_level": annotation.level,
        "title": annotation.title,
        "message": annotation.message,
    }

"""A small GitHub API over HTTP, with faults on request."""

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit


class GitHub:
    """State and log of the stand-in.

    Attributes:
        faults: responses for the next requests instead of the real ones: (verb, status, headers, has its effect).
        log: (verb, path, body) of each request that arrived.
        away: whether every request is lost: 503, or a closed connection.
        lost: how many requests were lost.
    """

    def __init__(self) -> None:
        self.checks: list[dict[str, Any]] = []
        self.comments: list[dict[str, Any]] = []
        self.deliveries: list[dict[str, Any]] = []
        self.app: dict[str, Any] = {}
        self.issues: list[dict[str, Any]] = []
        self.reactions: list[tuple[int, str]] = []
        self.files: list[dict[str, Any]] = []
        self.pull: dict[str, Any] = {}
        self.roles: dict[str, str] = {}
        self.role_names: dict[str, str] = {}
        self.faults: list[tuple[str, int, dict[str, str], bool]] = []
        self.log: list[tuple[str, str, dict[str, Any]]] = []
        self.not_modified = 0
        self.link = ""
        self.away = False
        self.lost = 0

    def result(self, verb: str, url: str, body: dict[str, Any], etag: str) -> tuple[int, dict[str, str], Any]:
        """Status, headers and JSON."""
        self.log.append((verb, url, body))
        fault = self.faults.pop(0) if self.faults and self.faults[0][0] in (verb, "*") else None
        if fault and not fault[3]:
            return fault[1], fault[2], {"message": "You have exceeded a secondary rate limit"}
        found = self._real(verb, url, body)
        if fault:
            return fault[1], fault[2], {"message": "lost"}
        link, self.link = self.link, ""
        if link:
            return 200, {"Link": link}, found[1]
        if verb == "GET" and found[0] == 200:
            mine = f'"{hash(json.dumps(found[1], sort_keys=True))}"'
            if mine == etag:
                self.not_modified += 1
                return 304, {"ETag": mine}, None
            return 200, {"ETag": mine}, found[1]
        return found[0], {}, found[1]

    def _real(self, verb: str, url: str, body: dict[str, Any]) -> tuple[int, Any]:
        parts = urlsplit(url)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        path = parts.path.removeprefix("/api/v3/repos/o/r/")
        if path.startswith("/api/v3/app/hook/deliveries"):
            return self._hook(path, query)
        if path in self.app:
            return 200, self.app[path]
        if path == "installation":
            return 200, {"id": 1, "app_id": 1, "target_id": 1}
        if path.endswith("/access_tokens"):
            return 201, {"token": "token", "expires_at": "2099-01-01T00:00:00Z", "permissions": {}}
        if verb == "GET":
            return self._read(path, query)
        if path == "check-runs":
            return 201, self._merge({"id": len(self.checks) + 1, "output": {}}, body, self.checks)
        if path.startswith("check-runs/"):
            return 200, self._merge(self.checks[int(path.split("/")[1]) - 1], body, None)
        if path.endswith("/reactions"):
            new = (int(path.split("/")[2]), str(body["content"]))
            self.reactions += [] if new in self.reactions else [new]
            return 201, {}
        if path.endswith("/comments"):
            own = {"issue": int(path.split("/")[1]), "user": {"login": "tipcflow[bot]"}}
            made = {"id": len(self.comments) + 1, **own, **body}
            self.comments.append(made)
            return 201, made
        return self._write_issue(path, body)

    def _write_issue(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        if path == "issues":
            number = len(self.issues) + 11
            own = {"user": {"login": "tipcflow[bot]"}, "html_url": f"https://github.test/o/r/issues/{number}"}
            self.issues.append({"number": number, "state": "open", **own, **body})
            return 201, self.issues[-1]
        if path.startswith("issues/comments/"):
            self.comments[int(path.split("/")[2]) - 1].update(body)
            return 200, {}
        if path.startswith("issues/"):
            self.issues[int(path.split("/")[1]) - 11].update(body)
            return 200, {}
        return 201, {}

    def _merge(
        self, check: dict[str, Any], body: dict[str, Any], created: list[dict[str, Any]] | None
    ) -> dict[str, Any]:
        new = body["output"]["annotations"]
        if len(new) > 50:
            raise AssertionError("GitHub refuses more than 50 annotations")
        kept = [*check.get("annotations", []), *new]
        output = {**body["output"], "annotations_count": len(kept)}
        check |= {**body, "output": output, "annotations": kept}
        if created is not None:
            created.append(check)
        return check

    def _hook(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        """Deliveries of the App's webhook, newest first, two a page; `cursor` is the index of the first one."""
        last = path.rpartition("/")[2]
        if last.isdecimal():
            one = next(each for each in self.deliveries if each["id"] == int(last))
            if one["payload"] is None:
                return 404, {"message": "Not Found"}
            return 200, {**one, "request": {"payload": one["payload"]}}
        first = int(query.get("cursor", 0))
        page = [{key: one[key] for key in one if key != "payload"} for one in self.deliveries[first : first + 2]]
        if first + 2 < len(self.deliveries):
            self.link = f'<https://x/app/hook/deliveries?per_page=2&cursor={first + 2}>; rel="next"'
        return 200, page

    def _read(self, path: str, query: dict[str, str]) -> tuple[int, Any]:
        page = slice((int(query.get("page", 1)) - 1) * 100, int(query.get("page", 1)) * 100)
        if path.endswith("/permission"):
            role = self.roles.get(path.split("/")[1])
            return (
                (200, {"permission": role, "role_name": self.role_names.get(path.split("/")[1], role)})
                if role
                else (404, {"message": "Not Found"})
            )
        if path.endswith("/files"):
            return 200, self.files[page]
        if path.endswith("/check-runs"):
            mine = [one for one in self.checks if one["head_sha"] == path.split("/")[1]]
            return 200, {"total_count": len(mine), "check_runs": mine[page]}
        if path == "issues":
            return 200, [one for one in self.issues if one["user"]["login"] == query["creator"]][page]
        if path.startswith("issues/") and path.count("/") == 1:
            return 200, self.issues[int(path.split("/")[1]) - 11]
        if path.endswith("/comments"):
            number = int(path.split("/")[1])
            return 200, [one for one in self.comments if one.get("issue", number) == number][page]
        return 200, self.pull


@contextmanager
def serving(github: GitHub, *, certificate: tuple[Path, Path] | None = None) -> Iterator[str]:
    """Run the stand-in; gives the address of the API.

    Args:
        certificate: certificate and key for https, in PEM form.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _all(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length) or b"{}")
            etag = self.headers.get("If-None-Match", "")
            if github.away:
                github.lost += 1
                self.close_connection = True
                if github.lost % 2:
                    return
                status, headers, found = 503, {}, {"message": "away"}
            else:
                status, headers, found = github.result(self.command, self.path, body, etag)
            data = b"" if found is None else json.dumps(found).encode()
            self.send_response(status)
            for name, value in {
                **headers,
                "Content-Type": "application/json",
                "Content-Length": str(len(data)),
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = _all  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        scheme = "https" if certificate else "http"
        yield f"{scheme}://127.0.0.1:{server.server_address[1]}/api/v3"
    finally:
        server.shutdown()
        server.server_close()

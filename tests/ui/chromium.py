"""A headless Chromium, driven by its own debugging protocol: renders pages as a user's browser does."""

import base64
import itertools
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from tests.support.programs import need
from websockets.sync.client import ClientConnection, connect

ANSWER_S = 60.0
_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
]


class Page:
    """One tab. `trouble` collects what the browser complained about: errors, exceptions, broken policies."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket, self._ids = socket, itertools.count(1)
        self.trouble: list[str] = []
        self.requests: list[str] = []
        for domain in ("Page", "Log", "Runtime", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One command and its response."""
        number = next(self._ids)
        self._socket.send(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            report = json.loads(self._socket.recv(timeout=ANSWER_S))
            if report.get("id") == number:
                assert "error" not in report, report
                return dict(report["result"])
            self._note(report)

    def _note(self, report: dict[str, Any]) -> None:
        method, params = report.get("method"), report.get("params", {})
        if method == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.trouble.append(params["entry"]["text"])
        if method == "Runtime.exceptionThrown":
            self.trouble.append(str(params["exceptionDetails"]))
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def log_in(self, url: str, token: str) -> None:
        """Take the cookie that the login sets."""
        self.call("Network.setCookie", name="_token", value=token, url=url)

    def show(self, width: int, height: int, scheme: str = "light") -> None:
        """The size of the window, and whether the system is light or dark."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def open(self, url: str) -> None:
        """Go there."""
        self.call("Page.navigate", url=url)

    def evaluate(self, script: str) -> Any:
        """The value of an expression in the page; an element counts as true."""
        value, problem = self._evaluate(script)
        assert not problem, f"{script}: {problem}"
        return value

    def _evaluate(self, script: str) -> tuple[Any, str]:
        plain = f"((found) => found instanceof Object || found?.nodeType ? true : found)({script})"
        report = self.call("Runtime.evaluate", expression=plain, returnByValue=True, awaitPromise=True)
        problem = report.get("exceptionDetails", {}).get("exception", {}).get("description", "")
        return report["result"].get("value"), problem

    def wait(self, script: str, limit_s: float = ANSWER_S) -> Any:
        """Wait until an expression is true; return its value; an error counts as false (no element yet)."""
        deadline = time.monotonic() + limit_s
        while True:
            value, problem = self._evaluate(script)
            if not problem and value:
                return value
            assert time.monotonic() < deadline, f"{script} never became true; {problem} {self.trouble}"
            time.sleep(0.1)

    def keep(self, path: Path) -> None:
        """A picture of what the window shows."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def running() -> Iterator[Page]:
    """A browser with one empty tab."""
    program = shutil.which("chromium-browser") or shutil.which("google-chrome") or need("chromium")
    profile = tempfile.mkdtemp(prefix="tipcflow-chromium-")
    command = [program, *_FLAGS, f"--user-data-dir={profile}", "about:blank"]
    browser = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        port = _port(browser)
        (tab,) = [one for one in httpx.get(f"http://{port}/json").json() if one["type"] == "page"]
        with connect(tab["webSocketDebuggerUrl"], max_size=None) as socket:
            yield Page(socket)
    finally:
        browser.terminate()
        browser.wait(20)
        shutil.rmtree(profile, ignore_errors=True)


def _port(browser: "subprocess.Popen[str]") -> str:
    assert browser.stderr is not None
    for line in browser.stderr:
        if "DevTools listening on" in line:
            return line.split("ws://")[1].split("/")[0]
    raise RuntimeError("Chromium ended at once")

"""Secrets that a run meets are found only in the log files of the run: not in tables, XComs, task logs, pages."""

import gzip
import re
import secrets
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from html import unescape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlencode

import pytest
from tests.support.page_routes import filled, get_templates
from tests.support.scheduler import CHAIN, DAG, SITE_PASSWORD, Scheduler

from tipcflow.airflow_api import DagRun
from tipcflow.domain import Run, Status, TipcflowError
from tipcflow.domain.run_documents import CertificateDocument

pytestmark = [pytest.mark.e2e, pytest.mark.full, pytest.mark.timeout(900)]
DECISION = "decide_baseline"
# Routes that may have nothing to show: no alert (unless an earlier test opened one), no decision, no build; the
# metrics have a token of their own.
UNREAD = {
    "/alerts/{number}",
    "/api/alerts/{number}",
    "/api/builds",
    "/decide/{dag_id}/{dag_run_id}",
    "/metrics",
    "/{path:path}",
}
# Forms in which programs print secrets.
LINES = (
    "GET https://bucket.example.com/data.tar?X-Amz-Signature={}&part=1",
    "fatal: unable to access 'https://bot:{}@git.example.com/suite.git/': error 403",
    "> Authorization: Bearer {}",
    "Config(user='ci', db_password='{}', host='db')",
    "env {{'HOME': '/root', 'DB_WORD': '{}'}}",
    "download --password {} --retries 3",
)


class Planted:
    """What was planted, and the search for it."""

    def __init__(self, scheduler: Scheduler, folder: Path) -> None:
        self.site = scheduler.site
        self.logged = [f"logged{secrets.token_hex(8)}" for _ in LINES]
        self.connection = f"connection{secrets.token_hex(8)}"
        self.text = folder / "printed.txt"
        lines = [line.format(word) for line, word in zip(LINES, self.logged, strict=True)]
        self.text.write_text("\n".join([*lines, ""]))
        extra = {"api_key": self.connection}
        fields = {"conn_type": "generic", "login": "ci", "password": self.connection, "extra": extra}
        scheduler.connect({"planted": fields})
        # The line with the private part; others are the same for all keys, or contain the public key.
        key = (self.site.nodes.folder / "id_ed25519").read_text().splitlines()[-3]
        # Secrets of the controller; nodes must not have them either.
        self.own = [SITE_PASSWORD, self.connection, key]

    def leaks(self, *runs: Run) -> list[str]:
        """Files and rows that contain a secret, except for the log files of these runs."""
        folders = [self.site.home, self.site.configs, self.site.suite, self.site.nodes.folder]
        logs = {path for run in runs for path in self._logs(run)}
        found = []
        for path in (path for folder in folders for path in folder.rglob("*") if path.is_file()):
            words = self.own if self._is_log(path, logs, runs) else [*self.own, *self.logged]
            if path.name in ("id_ed25519", "local_nodes.json"):
                words = [SITE_PASSWORD, self.connection, *self.logged]
            # Each part once: earlier tests may have left logs of 1 GB.
            seen = {word for part in contents(path) for word in words if word.encode() in part}
            found += [f"{path}: {word}" for word in sorted(seen)]
        return found

    def _logs(self, run: Run) -> Iterator[Path]:
        with self.site.store() as store:
            certificate = store.documents.get(run.id, CertificateDocument)
        assert certificate is not None
        for name in certificate.root["files"]:
            yield self.site.home / "runs" / run.id / name
            yield self.site.home / "runs" / run.id / f"{name}.gz"

    @staticmethod
    def _is_log(path: Path, logs: set[Path], runs: tuple[Run, ...]) -> bool:
        """Whether it is a log file of a run: fetched, or still on its node."""
        on_nodes = [f"/workspace/{folder}/{run.id}/" for folder in ("jobs", "runs") for run in runs]
        return path in logs or any(folder in str(path) for folder in on_nodes)


def contents(path: Path) -> Iterator[bytes]:
    """The bytes of a file, unpacked; of a SQLite file also each value, because tables may hold compressed ones."""
    data = path.read_bytes()
    yield data
    if path.suffix == ".gz":
        yield gzip.decompress(data)
    if data.startswith(b"SQLite format 3"):
        with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
            tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
            for (table,) in tables:
                for row in connection.execute(f'SELECT * FROM "{table}"'):
                    yield from (unpacked(value) for value in row if isinstance(value, bytes))


def unpacked(value: bytes) -> bytes:
    try:
        return zlib.decompress(value)
    except zlib.error:
        return value


class Page(NamedTuple):
    """A request to a route of the pages."""

    template: str
    address: str


class Pages:
    """All GET routes of the pages, for runs and their logs: HTML, JSON and CSV."""

    def __init__(
        self, scheduler: Scheduler, runs: Mapping[str, DagRun], logs: Sequence[Path], version: str
    ) -> None:
        self._scheduler = scheduler
        self._runs = runs
        self._logs = logs
        self._version = version
        self._lines: list[str] = []

    def responses(self) -> Iterator[tuple[Page, tuple[int, str]]]:
        """Yield each request with the status and the text of its response, headers included.

        The page of a chain, an earlier route, has the names of lines of the page of series.
        """
        for template in get_templates(self._scheduler.site.home / "airflow"):
            for run in self._runs:
                for query in self._queries(template, run):
                    address = f"/certification{filled(template, self._names(run))}?{urlencode(query, doseq=True)}"
                    response = self._scheduler.request("GET", address, follow_redirects=True)
                    headers = "".join(f"{name}: {value}\n" for name, value in response.headers.items())
                    if template.startswith("/chains/"):
                        links = re.findall(r'/series\?([^"]+)"', response.text)
                        self._lines = [line for link in links for line in parse_qs(unescape(link)).get("s", [])]
                    yield Page(template, address), (response.status_code, headers + response.text)

    def _names(self, run: str) -> dict[str, str]:
        known = {"run_id": run, "chain": CHAIN, "name": "app.css", "path": "nowhere", "number": "1"}
        return known | {"dag_id": DECISION, "dag_run_id": "none"}

    def _queries(self, template: str, run: str) -> list[dict[str, object]]:
        folder = self._scheduler.site.home / "runs" / run
        if template.endswith(("/tail", "/file")):
            files = [str(path.relative_to(folder)) for path in self._logs if folder in path.parents]
            assert files
            return [{"file": file} for file in files]
        of_run: dict[str, dict[str, object]] = {
            "/airflow/dag": {"dag_id": DAG},
            "/airflow/dag-run": {"dag_id": DAG, "run_id": self._runs[run].run_id},
            "/ab/new": {"run": run},
            "/nodes": {"history": 30},
            "/series": {"s": self._lines[:2]},
            "/api/series": {"s": self._lines[:2]},
            "/versions": {"new": self._version},
            "/api/versions": {"new": self._version},
        }
        if template.endswith("/compare"):
            query: dict[str, object] = {"run": list(self._runs)}
        else:
            query = of_run.get(template, {})
        return [query, {**query, "format": "csv"}] if template.startswith("/api/") else [query]


@pytest.fixture
def planted(scheduler: Scheduler, tmp_path: Path) -> Iterator[Planted]:
    """Secrets in the environment, in a connection, and in what the preparation and the training print."""
    site = scheduler.site
    files = [site.suite / "test_tipc" / "prepare.sh", site.suite / "train.py"]
    kept = {path: path.read_bytes() for path in files}
    made = Planted(scheduler, tmp_path)
    prepare, train = files
    prepare.write_text(prepare.read_text() + f"cat {made.text}; cat {made.text} >&2\n")
    text = train.read_text()
    printed = f"print(open({str(made.text)!r}).read(), flush=True)\n"
    raised = f"raise SystemExit(open({str(made.text)!r}).read())"
    old = 'raise SystemExit("training went wrong: the data is broken")'
    assert old in text
    train.write_text(text.replace(old, raised).replace("generator = random", f"{printed}generator = random", 1))
    yield made
    for path, content in kept.items():
        path.write_bytes(content)


def test_secrets_are_only_in_the_log_files_of_a_run(scheduler: Scheduler, planted: Planted) -> None:
    passed_dag_run, passed = scheduler.certify()
    assert passed.status is Status.PASS, passed.reason
    scheduler.site.edit_params("norm_train:train.py", "norm_train:train.py --inject exit@3")
    failed_dag_run, failed = scheduler.certify()
    assert failed.status is Status.FAILED, failed.reason
    logs = [path for path in (scheduler.site.home / "runs").rglob("main.log*") if path.is_file()]
    printed = b"".join(part for path in logs for part in contents(path))
    assert all(word.encode() in printed for word in planted.logged), "the planted lines were not printed"
    leaks = planted.leaks(passed, failed)
    assert not leaks, "\n".join(leaks)
    version = passed.framework or passed.suite_commit
    runs = {passed.id: passed_dag_run, failed.id: failed_dag_run}
    shown = dict(Pages(scheduler, runs, logs, version).responses())
    words = [*planted.own, *planted.logged]
    leaks = [f"{page}: {word}" for page, (_, text) in shown.items() for word in words if word in text]
    assert not leaks, "\n".join(leaks)
    read = {page.template for page, (code, _) in shown.items() if code == 200}
    assert {page.template for page in shown} - read <= UNREAD


def tables_with(file: Path, word: str) -> set[str]:
    with sqlite3.connect(f"file:{file}?mode=ro", uri=True) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name for name in names if word in repr(connection.execute(f'SELECT * FROM "{name}"').fetchall())}


def test_wheel_address_with_a_login_starts_nothing(scheduler: Scheduler, tmp_path: Path) -> None:
    planted = Planted(scheduler, tmp_path)
    word = f"wheel{secrets.token_hex(8)}"
    planted.own.append(word)
    address = f"https://bot:{word}@wheels.example.com/paddlepaddle-3.3.1-py3-none-any.whl"
    with pytest.raises(TipcflowError, match="framework_wheel") as caught:
        scheduler.start(framework_wheel=address, framework_sha256="0" * 64)
    assert word not in str(caught.value)
    leaks = planted.leaks()
    file = scheduler.site.home / "airflow" / "airflow.db"
    # Airflow's audit log has every request of its API, also refused ones.
    assert not [leak for leak in leaks if not leak.startswith(str(file))], "\n".join(leaks)
    assert tables_with(file, word) <= {"log"}

"""Files of a run: its logs and nothing else."""

import gzip
import os
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from tests.support.stories import record_run
from tests.ui.html_text import read

from tipcflow.execute.collect.log_archive import compress_logs
from tipcflow.store import Store

SECRET = "PASSWORD=hidden"


@pytest.fixture
def run(store: Store, home: Path) -> str:
    """A run with one log, and with secrets that must never be shown."""
    report = record_run(store).id
    folder = home / "runs" / report
    logs = folder / "norm_train_cpu%2Ftrain" / "node-a" / "logs"
    logs.mkdir(parents=True)
    (logs / "main.log").write_text("\x1b[31mred\x1b[0m\rover\nend\x07\n")
    for name in ("envlog.0", "backup_env.0.json", "envlog.log", "backup_env.log", "job.abcdef.log"):
        (logs / name).write_text(SECRET)
    (logs.parent / "weights.pdparams").write_text(SECRET)
    (logs.parent / "id_ed25519").write_text(SECRET)
    (folder / "events.jsonl").write_text("{}\n")
    (home / "secret.log").write_text(SECRET)
    other = home / "runs" / "other-run" / "step" / "node"
    other.mkdir(parents=True)
    (other / "main.log").write_text(SECRET)
    (logs / "link.log").symlink_to(home / "secret.log")
    (folder / "linked").symlink_to(home)
    os.mkfifo(logs / "pipe.log")
    return report


LONG = "".join(f"line {number}\n" for number in range(20_000))


def test_a_log_that_was_compressed_reads_as_before(browser: TestClient, run: str, home: Path) -> None:
    logs = home / "runs" / run / "norm_train_cpu%2Ftrain" / "node-a" / "logs"
    (logs / "long.log").write_text(LONG)
    (logs / "broken.log.gz").write_bytes(b"\x1f\x8b broken")
    where = f"/certification/runs/{run}/tail"
    before = browser.get(where, params={"file": MAIN.replace("main", "long")}).text
    compress_logs(home / "runs" / run)
    after = browser.get(where, params={"file": MAIN.replace("main", "long") + ".gz"})
    assert (after.status_code, after.text) == (200, before)
    assert "are in the download" in before
    broken = browser.get(where, params={"file": MAIN.replace("main.log", "broken.log.gz")})
    assert (broken.status_code, "cannot be unpacked" in broken.text) == (200, True)


MAIN = "norm_train_cpu%2Ftrain/node-a/logs/main.log"


def test_tail_returns_a_log(browser: TestClient, run: str) -> None:
    response = browser.get(f"/certification/runs/{run}/tail", params={"file": MAIN})
    assert (response.status_code, response.text) == (200, "red\nover\nend\n")
    assert response.headers["content-type"].startswith("text/plain")
    assert response.headers["x-content-type-options"] == "nosniff"
    response = browser.get(f"/certification/runs/{run}/file", params={"file": MAIN})
    assert response.content.startswith(b"\x1b[31mred")
    assert response.headers["content-disposition"] == "attachment; filename*=utf-8''main.log"


LOGS = MAIN.rpartition("/")[0]


@pytest.mark.parametrize(
    "file",
    [
        "",
        ".",
        "..",
        "/",
        "\0",
        "/etc/passwd",
        "../../secret.log",
        "../other-run/step/node/main.log",
        f"{LOGS}/../../../../../secret.log",
        f"{LOGS}/./../main.log",
        f"{LOGS}/link.log",
        "linked/secret.log",
        f"{LOGS}/envlog.0",
        f"{LOGS}/envlog.log",
        f"{LOGS}/backup_env.log",
        f"{LOGS}/backup_env.0.json",
        f"{LOGS}/job.abcdef.log",
        f"{LOGS}/pipe.log",
        f"{LOGS}/none.log",
        f"{LOGS}",
        f"{LOGS.rpartition('/')[0]}/weights.pdparams",
        f"{LOGS.rpartition('/')[0]}/id_ed25519",
        "..\\..\\secret.log",
        "%2e%2e/%2e%2e/secret.log",
        "x" * 5000 + ".log",
    ],
)
@pytest.mark.parametrize("route", ["tail", "file"])
def test_other_files_are_not_served(browser: TestClient, run: str, file: str, route: str) -> None:
    response = browser.get(f"/certification/runs/{run}/{route}", params={"file": file})
    assert response.status_code == (422 if "\0" in file else 404)
    assert SECRET not in response.text


@pytest.mark.parametrize("path", ["..", ".", "%2e%2e", "..%2fruns", "%2e%2e%2f..%2fetc", "other-run", "a%00b"])
def test_files_of_other_folders_are_not_served(browser: TestClient, run: str, path: str) -> None:
    for file in ("secret.log", "step/node/main.log", "passwd", MAIN):
        response = browser.get(f"/certification/runs/{path}/tail?file={file}")
        assert response.status_code in ((422,) if "%00" in path else (404, 200))
        assert SECRET not in response.text


def test_files_page_lists_logs_only(browser: TestClient, run: str) -> None:
    seen = read(browser.get(f"/certification/runs/{run}").text)
    listed = [line for line in seen.text.splitlines() if line.endswith((".log", "B")) or "download" in line]
    assert any("logs/main.log" in line for line in seen.text.splitlines())
    for name in ("envlog", "backup_env", "abcdef", "link", "pipe", "events"):
        assert not any(name in line for line in listed), name
    assert "weights.pdparams" in seen.text
    served = [value for value in seen.attributes("a", "href") if "/file?" in value]
    assert len(served) == 1


def test_a_large_log_is_cut_at_its_beginning(browser: TestClient, store: Store, home: Path, run: str) -> None:
    path = home / "runs" / run / MAIN
    path.write_text("x" * 300_000 + "\nthe end\n")
    text = browser.get(f"/certification/runs/{run}/tail", params={"file": MAIN}).text
    assert text.startswith("… the first ")
    assert text.endswith("\nthe end\n")
    assert len(text) < 70_000


def test_run_page_shows_thousands_of_files(browser: TestClient, home: Path, run: str) -> None:
    many = home / "runs" / run / "step" / "node"
    many.mkdir(parents=True)
    for number in range(2500):
        (many / f"{number}.txt").touch()
    assert browser.get(f"/certification/runs/{run}").status_code == 200


def test_secrets_in_logs_are_masked_on_pages_and_in_downloads(browser: TestClient, run: str, home: Path) -> None:
    log = home / "runs" / run / "norm_train_cpu%2Ftrain" / "node-a" / "logs" / "main.log"
    log.write_text("GET https://x/?token=SECRET123&a=1\nenv {'DB': 'SECRET123'}\nloss: 1\n")
    file = {"file": "norm_train_cpu%2Ftrain/node-a/logs/main.log"}
    assert (
        browser.get(f"/certification/runs/{run}/tail", params=file).text
        == "GET https://x/?token=***&a=1\nenv {…}\nloss: 1\n"
    )
    response = browser.get(f"/certification/runs/{run}/file", params=file)
    assert response.text == "GET https://x/?token=***&a=1\nenv {…}\nloss: 1\n"
    assert response.headers["Content-Disposition"] == "attachment; filename*=utf-8''main.log"


def test_a_download_is_complete_and_unpacked(browser: TestClient, run: str, home: Path) -> None:
    """Bytes that are not text, lines without an end, secrets across blocks, compressed files."""
    log = home / "runs" / run / MAIN
    whole = b"\xff\xfe 1\r\n" + b"loss: 0.5\n" * 60_000 + "é".encode() * 150_000 + b"\n"
    log.write_bytes(whole + b"password=SECRET123 " * 50_000 + b"\npassword=SECRET123")
    expected = whole + b"password=*** " * 50_000 + b"\npassword=***"
    got = browser.get(f"/certification/runs/{run}/file", params={"file": MAIN}).content
    assert b"SECRET" not in got
    assert got == expected
    log.with_name("main.log.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    response = browser.get(f"/certification/runs/{run}/file", params={"file": f"{MAIN}.gz"})
    assert (response.content, "main.log.gz" in response.headers["Content-Disposition"]) == (expected, False)

"""Pip's failures: the cause is in the message."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tipcflow.remote.runner import own_python
from tipcflow.remote.runner.own_python import PipFailure, make, must_install, why_pip_failed
from tipcflow.remote.runner.unmet import DISK, DOWNLOAD, ENVIRONMENT, Unusable

RETRY = "WARNING: Retrying (Retry(total={left}, connect=None, read=None, redirect=None, status=None)) after "
NO_NAME = (
    "connection broken by 'NewConnectionError('<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f>: "
    "Failed to establish a new connection: [Errno -3] Temporary failure in name resolution')': /simple/toy/"
)
SLOW = (
    "connection broken by 'ConnectTimeoutError(<pip._vendor.urllib3.connection.HTTPSConnection object at 0x7f>, "
    "'Connection to index.example timed out. (connect timeout=15.0)')': /simple/toy/"
)
PROXY = (
    "connection broken by 'ProxyError('Cannot connect to proxy.', RemoteDisconnected('Remote end closed "
    "connection without response'))': /simple/toy/"
)
NO_VERSION = "ERROR: Could not find a version that satisfies the requirement toy (from versions: none)"
FULL = "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device"
NO_MATCH = "ERROR: No matching distribution found for toy"


@pytest.mark.parametrize(
    ("lines", "cause"),
    [
        (
            [RETRY.format(left=0) + NO_NAME, NO_VERSION, NO_MATCH],
            PipFailure("the package index cannot be reached: Temporary failure in name resolution", DOWNLOAD),
        ),
        (
            [RETRY.format(left=0) + SLOW, NO_MATCH],
            PipFailure("the package index cannot be reached: connect timeout", DOWNLOAD),
        ),
        (
            [RETRY.format(left=0) + PROXY, NO_MATCH],
            PipFailure(
                "the package index cannot be reached: ProxyError('Cannot connect to proxy.', RemoteDisconnected("
                "'Remote end closed connection without response'))",
                DOWNLOAD,
            ),
        ),
        (
            [RETRY.format(left=4) + NO_NAME, NO_VERSION, NO_MATCH],
            PipFailure("No matching distribution found for toy", ENVIRONMENT),
        ),
        ([FULL], PipFailure(FULL[len("ERROR: ") :], DISK)),
        (["WARNING: Ignoring invalid distribution"], None),
        ([], None),
    ],
    ids=["no name", "timeout", "proxy", "recovered", "full disk", "only a warning", "silent"],
)
def test_the_cause_is_in_pips_words(lines: list[str], cause: PipFailure | None) -> None:
    assert why_pip_failed(lines) == cause


@pytest.mark.process
def test_pip_without_an_index_is_reported(
    tmp_path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    folder = str(tmp_path / "env")
    make(folder, [], with_pip=True)
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    with pytest.raises(Unusable) as failure:
        must_install("toy 1.0", folder, ["toy==1.0"])
    message = str(failure.value)
    assert message == "pip cannot install toy 1.0: the package index cannot be reached: Connection refused"
    assert b"No matching distribution found" in capfdbinary.readouterr().out
    assert failure.value.failure == DOWNLOAD
    (tmp_path / "empty").mkdir()
    with pytest.raises(Unusable, match=r"^pip cannot install toy 1\.0: No matching distribution found for toy=="):
        must_install("toy 1.0", folder, ["--no-index", "--find-links", str(tmp_path / "empty"), "toy==1.0"])


def test_pip_of_scripts_keeps_the_packages_of_the_suite_file(tmp_path: Path) -> None:
    folder = tmp_path / "odd 'name"
    folder.mkdir()
    line = own_python.constraints(str(folder), ["numpy<2", "six", "a[b]==1", "x @ file:///x.whl"])
    assert (folder / "constraints.txt").read_text() == "numpy<2\nsix\n"
    script = f'{line}printf "%s" "$PIP_CONSTRAINT"'
    for before in ("", "/own.txt"):
        env = {"PATH": os.environ["PATH"], **({"PIP_CONSTRAINT": before} if before else {})}
        done = subprocess.run(["/bin/sh", "-c", script], env=env, capture_output=True, text=True, check=True)
        url, _, more = done.stdout.partition(" ")
        assert (url, more) == ((folder / "constraints.txt").as_uri(), before)
    assert own_python.constraints(str(folder), []) == ""

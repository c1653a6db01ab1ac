import base64
import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from tests.support.bad_day import record_failure
from tests.support.stories import TRAIN, record_run

from tipcflow.domain.keys import AttemptKey
from tipcflow.domain.run_documents import CertificateDocument
from tipcflow.execute.collect.kept_files import record_kept
from tipcflow.execute.collect.store_files import store_files
from tipcflow.execute.verdict.judge import store_certificate, write_certificate
from tipcflow.execute.verdict.signature import sign_certificate
from tipcflow.report import as_text
from tipcflow.report.attestation import attested
from tipcflow.report.canonical import sha256
from tipcflow.report.certificate import links
from tipcflow.store import Store, migrate

GOLDEN = Path(__file__).parents[2] / "golden" / "report" / "certificate.json"


def test_schema_is_shown_and_upgraded(tipcflow: Callable[..., Any], home: Path) -> None:
    url = f"sqlite:///{home}/tipcflow.db"
    result = tipcflow("db", "current")
    assert result.out == f"{url}: schema none, this version of tipcflow requires {migrate.head()}\n"
    assert "tipcflow db upgrade" in result.err
    assert json.loads(tipcflow("db", "upgrade", "--json").out) == {
        "url": url,
        "before": "",
        "after": migrate.head(),
    }
    assert tipcflow("db", "upgrade").out == f"{url} is up to date (schema {migrate.head()})\n"
    result = tipcflow("db", "current", "--json")
    assert json.loads(result.out) == {"url": url, "current": migrate.head(), "head": migrate.head()}
    assert result.err == ""


def test_the_password_is_not_printed(tipcflow: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIPCFLOW_DATABASE_URL", "postgresql://me:hunter2@/x?host=/nowhere")
    for command in (["db", "current"], ["db", "upgrade"], ["runs"]):
        result = tipcflow(*command)
        assert result.code == 5
        assert result.err.startswith(
            "infra_failure: cannot use the database postgresql://me:***@/x?host=/nowhere: "
        )
        assert "hunter2" not in result.err + result.out
        assert "Traceback" not in result.err


def test_printed_certificate_equals_the_file(tipcflow: Callable[..., Any], home: Path) -> None:
    with Store.open() as store:
        run = record_failure(store, home)
        record_run(store)
    result = tipcflow("certificate", "show", "20261122")
    assert result.code == 0
    assert json.loads(result.out) == {"schema_version": 1, "run": run.id, "verdict": "failed"}
    assert tipcflow("certificate", "show", "20261122", "--json").out == result.out
    result = tipcflow("certificate", "show", "20261121")
    assert (result.code, result.out) == (2, "")
    assert "has no certificate" in result.err


def test_a_certificate_is_verified(tipcflow: Callable[..., Any], tmp_path: Path) -> None:
    golden = Path(__file__).parents[2] / "golden" / "report" / "certificate.json"
    mine = tmp_path / "certificate.json"
    mine.write_text(golden.read_text())
    result = tipcflow("certificate", "verify", str(mine))
    alone = f"{mine}: valid (the certificate alone: 0 of 1 collected files next to it)\n"
    assert (result.code, result.out) == (0, alone), result.err
    assert json.loads(tipcflow("certificate", "verify", str(mine), "--json").out) == {
        "file": str(mine), "problems": [], "signed": False, "compared": 0, "listed": 1,
    }  # fmt: skip
    mine.write_text(golden.read_text().replace('"pass"', '"failed"', 1))
    result = tipcflow("certificate", "verify", str(mine))
    assert result.code == 1
    assert "was changed" in result.out
    mine.write_text("nothing")
    result = tipcflow("certificate", "verify", str(mine))
    assert result.code == 2
    assert f"{mine}:1: is not a certificate; expected a JSON object" in result.err
    result = tipcflow("certificate", "verify", str(mine.with_name("none.json")))
    assert result.code == 2
    assert "cannot be read: No such file or directory" in result.err
    assert "the ID of a run" in result.err


def test_the_certificate_of_a_run_is_verified(tipcflow: Callable[..., Any], home: Path) -> None:
    with Store.open() as store:
        run = record_run(store)
    result = tipcflow("certificate", "verify", "latest")
    assert result.code == 2
    assert f"{run.id}/certificate.json: run {run.id} has no certificate here" in result.err
    made = {**json.loads(GOLDEN.read_text()), "links": [], "sha256": ""}
    made["verdict"] |= {"run": run.id, "status": "pass"}
    file = home / "runs" / run.id / "certificate.json"
    file.parent.mkdir(parents=True)
    file.write_text(rehashed(made))
    with Store.open() as store:
        store.documents.put(run.id, CertificateDocument(made))
    result = tipcflow("certificate", "verify", run.id[:10])
    missing = f"the collected files of the run are missing: 0 of 1 in {file.parent}\n"
    assert (result.code, result.out) == (1, missing), result.err
    assert "no such run" in tipcflow("certificate", "verify", "2027").err


@pytest.fixture
def two_runs(home: Path) -> tuple[str, str, Path]:
    """(failed run, passed run, public key); both have a signed certificate."""
    home.mkdir()
    private, public = key_pair(home, "site")
    with Store.open() as store:
        runs = (record_failure(store, home).id, record_run(store).id)
        for run in runs:
            file = write_certificate(store, run, home)
            sign_certificate(json.loads(file.read_text()), file, private)
    return (*runs, public)


def test_signed_certificate_of_another_run_is_refused(
    two_runs: tuple[str, str, Path], tipcflow: Callable[..., Any], home: Path
) -> None:
    failed, passed, public = two_runs
    for run in (failed, passed):
        assert tipcflow("certificate", "verify", run, "--key", str(public)).code == 0
    shutil.rmtree(home / "runs" / failed)
    shutil.copytree(home / "runs" / passed, home / "runs" / failed)
    result = tipcflow("certificate", "verify", failed, "--key", str(public))
    assert result.code == 1
    of_run, status, content = result.out.splitlines()
    assert of_run == f"the certificate is of run {passed}, not of run {failed}"
    assert status == "the certificate states pass; the run has failed"
    assert content.startswith("the certificate differs from that in the database: suite, ")


def test_section_that_differs_from_the_database_is_named(
    two_runs: tuple[str, str, Path], tipcflow: Callable[..., Any], home: Path
) -> None:
    _, passed, _ = two_runs
    file = home / "runs" / passed / "certificate.json"
    made = json.loads(file.read_text())
    made["suite"]["commit"] = "f" * 40
    file.write_text(rehashed(made))
    result = tipcflow("certificate", "verify", passed)
    expected = "the certificate differs from that in the database: suite\n"
    assert (result.code, result.out) == (1, expected), result.err
    with Store.open() as store:
        store.documents.put(passed, CertificateDocument(made))
        store.runs.reopen(passed)
    result = tipcflow("certificate", "verify", passed)
    assert (result.code, result.out) == (1, "the certificate states pass; the run has no status\n"), result.err


def test_certificate_of_the_object_store_is_verified_with_its_files(
    tipcflow: Callable[..., Any], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = home / "store"
    objects.mkdir(parents=True)
    monkeypatch.setenv("TIPCFLOW_STORE", f"file://{objects}")
    with Store.open() as store:
        record_run(store)
        run = record_failure(store, home).id
        folder = home / "runs" / run / TRAIN.replace("/", "%2F")
        record_kept(store, run, TRAIN, 1, folder)
        assert store_files(store, run, AttemptKey(TRAIN, 1), folder, home) == ""
        write_certificate(store, run, home)
        assert store_certificate(store, run, home) == ""
    (home / "runs").rename(home / "other machine")
    result = tipcflow("certificate", "verify", run)
    assert (result.code, "valid (3 of 3 collected files checked)" in result.out) == (0, True), (
        result.out + result.err
    )
    copy = next((home / "objects").rglob("main.log"))
    copy.write_text("changed here")
    assert tipcflow("certificate", "verify", run).code == 0
    assert copy.read_text() != "changed here", "read again"
    certificate = home / "runs" / run / "certificate.json"
    made = json.loads(certificate.read_text())
    made["suite"]["commit"] = "f" * 40
    certificate.write_text(as_text(made))
    result = tipcflow("certificate", "verify", run)
    changed = f"{certificate} was changed, and replaced by the object store's: the certificate was modified: "
    assert (result.code, result.out.startswith(changed)) == (1, True), result.out
    assert tipcflow("certificate", "verify", run).code == 0
    certificate.write_text("{")
    assert "is not a certificate" in tipcflow("certificate", "verify", run).out
    certificate.write_text(rehashed(made))
    result = tipcflow("certificate", "verify", run)
    note = f"note: {certificate} differed from the database's, and was replaced by the object store's\n"
    assert (result.code, result.err) == (0, note), result.out
    gone = (objects / "runs").rename(objects / "gone")
    result = tipcflow("certificate", "verify", run)
    places = f"{home}/runs/{run} or file://{objects}/runs/{run}"
    missing = f"the collected files of the run are missing: 0 of 3 in {places}\n"
    assert (result.code, result.out) == (1, missing), result.err
    gone.rename(objects / "runs")
    log = next((objects / "runs").rglob("main.log"))
    log.write_bytes(log.read_bytes()[:-1])
    result = tipcflow("certificate", "verify", run)
    assert result.code == 1
    assert "is damaged: its SHA-256 differs" in result.out


def test_a_certificate_is_shown_as_markdown_and_junit(tipcflow: Callable[..., Any], home: Path) -> None:
    with Store.open() as store:
        run = record_run(store)
        store.documents.put(run.id, CertificateDocument({"run": run.id}))
    result = tipcflow("certificate", "show", run.id, "--format", "markdown")
    assert (result.code, result.out.startswith("## pass: ")) == (0, True), result.err
    assert run.id in result.out
    result = tipcflow("certificate", "show", run.id, "--format", "junit")
    assert (result.code, result.out.startswith("<?xml"), f'name="{run.id}"' in result.out) == (0, True, True)
    result = tipcflow("certificate", "show", run.id, "--format", "junit", "--json")
    assert (result.code, "--json, --format" in result.err) == (2, True)


def key_pair(folder: Path, name: str) -> tuple[Path, Path]:
    """PEM files of a new private key and its public key."""
    key = Ed25519PrivateKey.generate()
    private, public = folder / f"{name}.pem", folder / f"{name}.pub.pem"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return private, public


@pytest.fixture
def signed(tmp_path: Path) -> tuple[Path, Path, Path]:
    """(certificate, its signature, public key)."""
    private, public = key_pair(tmp_path, "site")
    file = tmp_path / "run" / "certificate.json"
    file.parent.mkdir()
    file.write_text(GOLDEN.read_text())
    return file, sign_certificate(json.loads(file.read_text()), file, private), public


def rehashed(made: dict[str, Any]) -> str:
    """The certificate with hashes that fit its content, as a forger writes it."""
    made["links"] = links(made)
    made["sha256"] = sha256({key: value for key, value in made.items() if key != "sha256"})
    return as_text(made)


def test_a_signed_certificate_is_valid(signed: tuple[Path, Path, Path], tipcflow: Callable[..., Any]) -> None:
    file, signature, public = signed
    result = tipcflow("certificate", "verify", str(file), "--key", str(public))
    assert (result.code, "signature valid" in result.out) == (0, True), result.out + result.err
    assert json.loads(tipcflow("certificate", "verify", str(file), "--key", str(public), "--json").out)["signed"]
    assert not json.loads(tipcflow("certificate", "verify", str(file), "--json").out)["signed"], "not checked"
    stated = attested(json.loads(signature.read_text()))
    assert stated.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert stated.status == json.loads(file.read_text())["verdict"]["status"]


def test_a_consistent_forgery_is_found(signed: tuple[Path, Path, Path], tipcflow: Callable[..., Any]) -> None:
    file, _, public = signed
    made = json.loads(file.read_text())
    made["suite"]["commit"] = "f" * 40
    file.write_text(rehashed(made))
    assert tipcflow("certificate", "verify", str(file)).code == 0, "the hashes fit"
    result = tipcflow("certificate", "verify", str(file), "--key", str(public))
    expected = "the signature is for another certificate: the file's SHA-256 differs\n"
    assert (result.code, result.out) == (1, expected)


def test_signature_of_another_key_is_refused_unless_given(
    signed: tuple[Path, Path, Path], tmp_path: Path, tipcflow: Callable[..., Any]
) -> None:
    file, _, public = signed
    _, other = key_pair(tmp_path, "other")
    result = tipcflow("certificate", "verify", str(file), "--key", str(other))
    expected = "the signature is not valid for the given key: another key signed it, or it was changed\n"
    assert (result.code, result.out) == (1, expected)
    assert tipcflow("certificate", "verify", str(file), "--key", str(other), "--key", str(public)).code == 0


@pytest.mark.parametrize("broken", ["payload", "sig", "type", "text", "none"])
def test_a_broken_signature_is_reported(
    signed: tuple[Path, Path, Path], tipcflow: Callable[..., Any], broken: str
) -> None:
    file, signature, public = signed
    made = json.loads(signature.read_text())
    if broken == "none":
        signature.unlink()
    elif broken == "text":
        signature.write_text("[]")
    else:
        value = made["signatures"][0]["sig"] if broken == "sig" else made["payload"]
        changed = ("B" if value[0] == "A" else "A") + value[1:]
        if broken == "sig":
            made["signatures"][0]["sig"] = changed
        elif broken == "payload":
            made["payload"] = changed
        else:
            made["payloadType"] = "text/plain"
        signature.write_text(json.dumps(made))
    result = tipcflow("certificate", "verify", str(file), "--key", str(public))
    assert result.code == 1
    assert "sign" in result.out
    assert "Traceback" not in result.out + result.err


def test_statement_about_another_run_is_refused(
    signed: tuple[Path, Path, Path], tmp_path: Path, tipcflow: Callable[..., Any]
) -> None:
    file, _, _ = signed
    private, public = key_pair(tmp_path, "other")
    made = json.loads(file.read_text())
    run = made["verdict"]["run"]
    sign_certificate({**made, "verdict": {**made["verdict"], "run": "r2"}}, file, private)
    result = tipcflow("certificate", "verify", str(file), "--key", str(public))
    expected = f"the signature is for run r2 (r2/certificate.json); the certificate is of run {run}\n"
    assert (result.code, result.out) == (1, expected), result.err


@pytest.mark.parametrize(
    ("listed", "problem"),
    [
        ("../../secret", "lists a path outside of the run's folder: '../../secret'"),
        ("{folder}/secret", "lists a path outside of the run's folder: '{folder}/secret'"),
        ("a" * 5000, f"lists a path that no file can have: '{'a' * 100}… (5000 characters)'"),
        ("a\0b", "lists a path that no file can have: 'a\\x00b'"),
    ],
    ids=["parent", "absolute", "long", "nul"],
)
def test_listed_path_outside_of_the_folder_is_refused(
    tipcflow: Callable[..., Any], tmp_path: Path, listed: str, problem: str
) -> None:
    secret, file = tmp_path / "secret", tmp_path / "a" / "b" / "certificate.json"
    secret.write_text("x")
    file.parent.mkdir(parents=True)
    made = json.loads(GOLDEN.read_text())
    made["files"] = {listed.replace("{folder}", str(tmp_path)): hashlib.sha256(b"x").hexdigest()}
    file.write_text(rehashed(made))
    result = tipcflow("certificate", "verify", str(file), "--json")
    found = json.loads(result.out)
    expected = f"the certificate {problem.replace('{folder}', str(tmp_path))}"
    assert (result.code, found["problems"], found["compared"]) == (1, [expected], 0), result.err


def test_deeply_nested_file_is_refused(signed: tuple[Path, Path, Path], tipcflow: Callable[..., Any]) -> None:
    file, signature, public = signed
    payload = {"payload": base64.b64encode(b"[" * 200_000).decode()}
    for text in ("[" * 200_000, json.dumps({**json.loads(signature.read_text()), **payload})):
        signature.write_text(text)
        result = tipcflow("certificate", "verify", str(file), "--key", str(public))
        assert (result.code, "the signature is not readable: " in result.out) == (1, True), result.err
    for text in ("[" * 200_000, '{"a":' + "[" * 700 + "]" * 700 + "}"):
        file.write_text(text)
        result = tipcflow("certificate", "verify", str(file))
        assert (result.code, "is not a certificate; found 'deeply nested values'" in result.err) == (2, True)

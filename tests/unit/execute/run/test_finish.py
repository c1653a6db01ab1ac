"""The end of a run: what is stored beside the verdict cannot replace it, and a green run needs its certificate."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from tests.support.stories import a_run, open_store, record_run

from tipcflow.domain import Run, Status
from tipcflow.domain.run.kept_files import SignedDocument
from tipcflow.domain.run_documents import JudgementDocument
from tipcflow.execute.run import phases
from tipcflow.execute.run.context import TaskContext
from tipcflow.execute.verdict import judge as judgement
from tipcflow.report import verify
from tipcflow.report.attestation import attested
from tipcflow.store import Store

KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
PEM = KEY.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
FILES = ("certificate.json", "certificate.dsse.json")
AFTER = "; after the repair, clear the task `verdict` in Airflow, or run again"
NO_KEY = "the run's certificate needs a signature: set TIPCFLOW_SIGNING_KEY for this process, which has no key"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "own.db") as store:
        yield store


class Ending:
    """A run that was judged, on a machine with `home`."""

    def __init__(self, store: Store, home: Path, judged: Status) -> None:
        self.store, self.home = store, home
        self.run = record_run(store, a_run(status=None), status=None).id
        store.documents.put(self.run, JudgementDocument(status=judged, reason="judged"))
        self.notes: list[str] = []

    @property
    def folder(self) -> Path:
        return self.home / "runs" / self.run

    def finish(self) -> Run:
        self.notes.clear()
        context = SimpleNamespace(store=self.store, run_id=self.run, home=self.home, note=self.notes.append)
        return phases.finish_run(cast(TaskContext, context))


def stated(folder: Path) -> tuple[str, bool]:
    """(Status, whether it is signed) of a valid certificate in a folder."""
    made = json.loads((folder / FILES[0]).read_text())
    assert verify(made) == []
    signature = folder / FILES[1]
    if not signature.is_file():
        return made["verdict"]["status"], False
    envelope = attested(json.loads(signature.read_text()))
    KEY.public_key().verify(envelope.signatures[0].value, envelope.signed)
    digest = hashlib.sha256((folder / FILES[0]).read_bytes()).hexdigest()
    assert envelope.sha256 == digest, "of an earlier certificate"
    return envelope.status, True


def raises(error: Exception) -> Any:
    def function(*_: object) -> None:
        raise error

    return function


def test_errors_of_alerts_and_opened_files_leave_the_verdict(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending = Ending(store, tmp_path, Status.REGRESSION)
    monkeypatch.setattr(phases, "track_alone", raises(ValueError("facts of another version")))
    monkeypatch.setattr(phases, "note_opened", raises(OSError("disk full")))
    ended = ending.finish()
    assert (ended.status, ended.reason) == (Status.REGRESSION, "judged")
    assert ending.notes == [
        "its alerts could not be stored: ValueError('facts of another version')",
        "the files that it opened could not be stored: OSError('disk full')",
    ]


def test_green_run_with_an_unusable_key_fails_until_the_key_is_repaired(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending, key = Ending(store, tmp_path, Status.PASS), tmp_path / "signing.pem"
    monkeypatch.setenv("TIPCFLOW_SIGNING_KEY", str(key))
    ended = ending.finish()
    why = (
        "the certificate cannot be signed: TIPCFLOW_SIGNING_KEY: cannot use the key: No such file or directory; "
        f"found '{key}'; expected a PEM file with an Ed25519 private key without passphrase"
    ) + AFTER
    assert (ended.status, ended.reason, ending.notes) == (Status.INFRA_FAILURE, why, [why])
    assert stated(ending.folder) == ("infra_failure", False)
    key.write_bytes(PEM)
    ended = ending.finish()
    assert (ended.status, ended.reason, ending.notes) == (Status.PASS, "judged", [])
    assert stated(ending.folder) == ("pass", True)
    made = json.loads((ending.folder / FILES[0]).read_text())
    assert made["verdict"]["ended_at"] == ended.ended_at


def test_verdict_that_is_stored_again_keeps_the_end_of_the_run(store: Store, tmp_path: Path) -> None:
    """Runs that are judged as of an earlier time are compared with the runs that had ended by then."""
    ending = Ending(store, tmp_path, Status.PASS)
    store.runs.finish(ending.run, Status.PASS, "judged", 7.0)
    assert ending.finish().ended_at == 7.0
    assert json.loads((ending.folder / FILES[0]).read_text())["verdict"]["ended_at"] == 7.0
    store.runs.reopen(ending.run)
    assert (ending.finish().ended_at or 0.0) > 7.0, "executed again, it ends again"


def test_red_run_with_an_unusable_key_keeps_its_verdict(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending, key = Ending(store, tmp_path, Status.REGRESSION), tmp_path / "signing.pem"
    key.write_bytes(KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    monkeypatch.setenv("TIPCFLOW_SIGNING_KEY", str(key))
    ended = ending.finish()
    assert (ended.status, ended.reason) == (Status.REGRESSION, "judged")
    assert ["not an Ed25519 private key" in note for note in ending.notes] == [True]


def test_green_run_whose_certificate_cannot_be_stored_fails_until_the_store_responds(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending, objects = Ending(store, tmp_path, Status.PASS), tmp_path / "objects"
    (tmp_path / "signing.pem").write_bytes(PEM)
    monkeypatch.setenv("TIPCFLOW_SIGNING_KEY", str(tmp_path / "signing.pem"))
    monkeypatch.setenv("TIPCFLOW_STORE", f"file://{objects}")
    ended = ending.finish()
    why = f"the certificate is not stored: the folder of the object store file://{objects} does not exist"
    assert (ended.status, ended.reason.startswith(why)) == (Status.INFRA_FAILURE, True), ended.reason
    assert stated(ending.folder) == ("infra_failure", True)
    objects.mkdir()
    assert ending.finish().status is Status.PASS
    assert stated(ending.folder) == stated(objects / "runs" / ending.run) == ("pass", True)


def signed_and_stored(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Ending, Path]:
    """A green run whose signed certificate is in an object store, and the store's folder."""
    ending, objects = Ending(store, tmp_path / "first", Status.PASS), tmp_path / "objects"
    objects.mkdir()
    (tmp_path / "signing.pem").write_bytes(PEM)
    monkeypatch.setenv("TIPCFLOW_STORE", f"file://{objects}")
    monkeypatch.setenv("TIPCFLOW_SIGNING_KEY", str(tmp_path / "signing.pem"))
    assert ending.finish().status is Status.PASS
    return ending, objects


def test_signed_certificate_is_not_replaced_by_a_green_unsigned_certificate(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task `verdict` was cleared, and another worker without the key runs it."""
    ending, objects = signed_and_stored(store, tmp_path, monkeypatch)
    monkeypatch.delenv("TIPCFLOW_SIGNING_KEY")
    ending.home = tmp_path / "second"
    for clearing in ("first", "second"):
        ended = ending.finish()
        assert (ended.status, ended.reason) == (Status.INFRA_FAILURE, NO_KEY + AFTER), f"{clearing} clearing"
        for folder in (ending.folder, objects / "runs" / ending.run):
            assert stated(folder) == ("infra_failure", False), "a signature of the earlier certificate is there"
    monkeypatch.setenv("TIPCFLOW_SIGNING_KEY", str(tmp_path / "signing.pem"))
    assert ending.finish().status is Status.PASS
    assert stated(ending.folder) == stated(objects / "runs" / ending.run) == ("pass", True)


def test_run_that_an_earlier_version_signed_needs_a_signature_at_every_clearing(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier versions stored only the signature, not that there was one."""
    ending = Ending(store, tmp_path, Status.PASS)
    (tmp_path / "signing.pem").write_bytes(PEM)
    monkeypatch.setenv("TIPCFLOW_SIGNING_KEY", str(tmp_path / "signing.pem"))
    assert ending.finish().status is Status.PASS
    store.documents.remove(ending.run, SignedDocument)
    monkeypatch.delenv("TIPCFLOW_SIGNING_KEY")
    assert [ending.finish().status for _ in range(2)] == [Status.INFRA_FAILURE] * 2


@pytest.mark.parametrize("judged", [Status.PASS, Status.REGRESSION])
def test_run_that_met_an_unusable_key_needs_a_signature(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, judged: Status
) -> None:
    """Red at first, or not: a later judgement may be green."""
    ending = Ending(store, tmp_path, judged)
    monkeypatch.setenv("TIPCFLOW_SIGNING_KEY", str(tmp_path / "signing.pem"))
    ending.finish()
    store.documents.put(ending.run, JudgementDocument(status=Status.PASS, reason="judged"))
    monkeypatch.delenv("TIPCFLOW_SIGNING_KEY")
    for clearing in ("first", "second"):
        ended = ending.finish()
        assert (ended.status, ended.reason) == (Status.INFRA_FAILURE, NO_KEY + AFTER), f"{clearing} clearing"
        assert stated(ending.folder) == ("infra_failure", False)
    (tmp_path / "signing.pem").write_bytes(PEM)
    monkeypatch.setenv("TIPCFLOW_SIGNING_KEY", str(tmp_path / "signing.pem"))
    assert ending.finish().status is Status.PASS
    assert stated(ending.folder) == ("pass", True)


def test_signature_in_a_store_that_did_not_respond_is_not_forgotten(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An earlier version signed the run. The store fails, then responds again while the certificate is stored."""
    ending, objects = signed_and_stored(store, tmp_path, monkeypatch)
    store.documents.remove(ending.run, SignedDocument)
    monkeypatch.delenv("TIPCFLOW_SIGNING_KEY")
    ending.home = tmp_path / "second"
    objects.rename(tmp_path / "away")
    ended = ending.finish()
    why = "an earlier certificate may be signed, and TIPCFLOW_SIGNING_KEY is not set here: the folder of"
    assert (ended.status, ended.reason.startswith(why)) == (Status.INFRA_FAILURE, True), ended.reason
    assert ended.reason.endswith(AFTER)
    write = judgement.write_certificate

    def written_late(*positional: Any, **named: Any) -> Path:
        path = write(*positional, **named)
        if not objects.exists():
            (tmp_path / "away").rename(objects)
        return path

    monkeypatch.setattr(judgement, "write_certificate", written_late)
    assert ending.finish().status is Status.INFRA_FAILURE
    assert stated(objects / "runs" / ending.run) == ("infra_failure", False)
    ended = ending.finish()
    assert (ended.status, ended.reason) == (Status.INFRA_FAILURE, NO_KEY + AFTER)


def test_without_a_key_no_signature_is_needed(store: Store, tmp_path: Path) -> None:
    ending = Ending(store, tmp_path, Status.PASS)
    assert (ending.finish().status, ending.notes) == (Status.PASS, [])
    assert stated(ending.folder) == ("pass", False)

"""Which lost members a sweep queries, how often, and its messages (real nodes: tests/cluster)."""

import dataclasses
import hashlib
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from tests.support.stories import TRAIN, a_plan, a_record, a_run, open_store

from tipcflow.domain import Cluster, InfraError, MemberState, Node, Status
from tipcflow.domain.keys import MemberKey
from tipcflow.domain.run_documents import CertificateDocument, ClusterDocument, LateLogs, LateLogsDocument
from tipcflow.execute.objects.object_store import ObjectStore
from tipcflow.execute.sweeps import late_logs as module
from tipcflow.execute.sweeps.late_logs import RUNS, STORING_S, TRIES, late_logs
from tipcflow.execute.sweeps.maintenance import DAY_S, Upkeep
from tipcflow.execute.verdict.judge import store_certificate, write_certificate
from tipcflow.report.attestation import attested
from tipcflow.store import Store
from tipcflow.store.run.members import LostMember
from tipcflow.transport import Transport

NOW = time.time()
NODES = [
    {"name": name, "address": f"192.0.2.{number}", "python": "/usr/bin/python3", "workspace": "/var/lib/tipcflow"}
    for number, name in enumerate(("node-a", "node-b"), 1)
]
CLUSTER = Cluster.model_validate({"name": "pair", "nodes": NODES})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path / "tipcflow.db") as made:
        yield made


@pytest.fixture
def messages() -> list[str]:
    return []


@pytest.fixture
def upkeep(store: Store, tmp_path: Path, messages: list[str]) -> Upkeep:
    def connect(node: Node) -> Transport:
        raise InfraError(f"node {node.name} does not respond")

    return Upkeep(store, tmp_path, tmp_path / "configs", connect, messages.append, now=NOW)


def lose(
    store: Store,
    run: str,
    *,
    status: Status = Status.INFRA_FAILURE,
    ended: bool = True,
    days: float = 1.0,
    lost: str = "node node-b was lost: timed out",
) -> LostMember:
    """A run whose training lost node-b."""
    store.runs.create(a_run(run, status=None, ended_at=None), a_plan())
    store.documents.put(run, ClusterDocument(CLUSTER))
    attempt = store.members.join(run, TRAIN, ["node-a", "node-b"], NOW).attempt
    store.members.put(run, TRAIN, attempt, MemberState(node="node-a", record=a_record(run)))
    record = None if lost else a_record(run, node="node-b")
    store.members.put(run, TRAIN, attempt, MemberState(node="node-b", lost=lost, record=record))
    store.attempts.close(run, TRAIN, attempt, status, "", [], NOW)
    if ended:
        store.runs.finish(run, status, "", NOW - days * DAY_S)
    return LostMember(run=run, step=TRAIN, attempt=attempt, node="node-b")


def result(monkeypatch: pytest.MonkeyPatch, store: Store, *lost: str, busy: str = "") -> list[str]:
    """Both nodes have all folders; the logs of the `lost` runs cannot be fetched. Return the queried runs."""
    requests: list[str] = []
    there = frozenset(run.id for run in store.runs.newest(limit=500))

    def fetched(upkeep: Upkeep, one: LostMember, tries: int) -> LateLogs:
        requests.append(one.run)
        if one.run in lost:
            return LateLogs(done=tries >= TRIES, tries=tries, message="broken")
        return LateLogs(done=True, tries=tries, samples=7, message="7 samples")

    monkeypatch.setattr(
        module, "_listed", lambda _, one: dataclasses.replace(one, there=there, busy=frozenset({busy}))
    )
    monkeypatch.setattr(module, "_fetched", fetched)
    return requests


def test_lost_members_have_no_record_and_belong_to_ended_runs(store: Store) -> None:
    newer, older = lose(store, "newer"), lose(store, "older", days=3)
    lose(store, "running", ended=False)
    lose(store, "cancelled", status=Status.CANCELLED)
    lose(store, "recorded", lost="")
    lose(store, "forgotten", days=15)
    assert store.members.lost(NOW - 14 * DAY_S) == [older, newer]


def test_a_node_that_does_not_respond_is_left_to_the_next_sweep(
    store: Store, upkeep: Upkeep, messages: list[str]
) -> None:
    lose(store, "r1")
    assert late_logs(upkeep) == "0 of 1 lost nodes responded: 0 samples of 0 runs fetched late"
    assert (messages, store.documents.get("r1", LateLogsDocument)) == ([], None)


def test_logs_are_requested_until_fetched_or_three_times(
    store: Store, upkeep: Upkeep, messages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lose(store, "fine")
    lose(store, "broken")
    requests = result(monkeypatch, store, "broken")
    assert late_logs(upkeep) == "1 of 1 lost nodes responded: 7 samples of 2 runs fetched late"
    assert messages == ["run broken: broken", "run fine: 7 samples"]
    for _ in range(5):
        late_logs(upkeep)
    assert (requests.count("fine"), requests.count("broken")) == (1, TRIES)
    assert late_logs(upkeep) == "0 of 0 lost nodes responded: 0 samples of 0 runs fetched late"


def test_a_job_that_is_still_running_is_left_to_the_next_sweep(
    store: Store, upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose(store, "r1")
    requests = result(monkeypatch, store, busy="r1")
    late_logs(upkeep)
    assert requests == []
    result(monkeypatch, store)
    assert late_logs(upkeep).endswith("7 samples of 1 runs fetched late")


def test_only_the_chosen_nodes_and_run_are_fetched(
    store: Store, upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose(store, "r1")
    lose(store, "r2")
    requests = result(monkeypatch, store)
    late_logs(upkeep, addresses={"192.0.2.1"})
    assert requests == []
    late_logs(upkeep, addresses={"192.0.2.2"}, run="r2")
    assert requests == ["r2"]


@pytest.mark.slow
def test_a_sweep_is_limited(store: Store, upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(RUNS + 3):
        lose(store, f"r{number:03}")
    requests = result(monkeypatch, store)
    late_logs(upkeep)
    assert len(requests) == RUNS
    late_logs(upkeep)
    assert len(set(requests)) == len(requests) == RUNS + 3


def test_a_node_has_a_deadline(store: Store, upkeep: Upkeep, monkeypatch: pytest.MonkeyPatch) -> None:
    lose(store, "r1")
    requests = result(monkeypatch, store)
    monkeypatch.setattr(module, "NODE_S", -1.0)
    late_logs(upkeep)
    assert requests == []
    assert store.documents.get("r1", LateLogsDocument) is None


def test_signed_certificate_is_updated_only_with_the_key(
    store: Store, upkeep: Upkeep, messages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    key, objects = upkeep.home / "signing.pem", upkeep.home / "objects"
    objects.mkdir()
    private = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    key.write_bytes(private)
    monkeypatch.setenv("TIPCFLOW_STORE", f"file://{objects}")
    monkeypatch.setenv("TIPCFLOW_SIGNING_KEY", str(key))
    for run in ("r1", "r2"):
        lose(store, run)
        write_certificate(store, run, upkeep.home)
        assert store_certificate(store, run, upkeep.home) == ""
    # Worker 2 has no files of run r2. The certificate of r3 is not signed.
    shutil.rmtree(upkeep.home / "runs" / "r2")
    monkeypatch.delenv("TIPCFLOW_SIGNING_KEY")
    lose(store, "r3")
    unsigned = write_certificate(store, "r3", upkeep.home)
    before = {path: path.read_bytes() for path in upkeep.home.rglob("certificate*.json")}
    assert len(before) == 7
    log = unsigned.parent / TRAIN.replace("/", "%2F") / "node-b" / "logs" / "main.log"
    log.parent.mkdir(parents=True)
    log.write_text("fetched late")
    result(monkeypatch, store)
    late_logs(upkeep)
    why = "the run's certificate needs a signature: set TIPCFLOW_SIGNING_KEY for this process, which has no key"
    refused = [f"run {run}: its certificate was not updated: {why}" for run in ("r1", "r2")]
    samples = [f"run {run}: 7 samples" for run in ("r1", "r2", "r3")]
    assert messages == [samples[0], refused[0], samples[1], refused[1], samples[2]]
    changed = {path: path.read_bytes() for path in upkeep.home.rglob("certificate*.json")}
    assert {path for path in changed if changed[path] != before.get(path)} == {
        unsigned, objects / "runs" / "r3" / "certificate.json",
    }  # fmt: skip


def test_interrupted_write_of_a_certificate_is_completed(
    store: Store, upkeep: Upkeep, messages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    key, objects = upkeep.home / "signing.pem", upkeep.home / "objects"
    objects.mkdir()
    private = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    key.write_bytes(private)
    monkeypatch.setenv("TIPCFLOW_STORE", f"file://{objects}")
    monkeypatch.setenv("TIPCFLOW_SIGNING_KEY", str(key))
    lose(store, "r1")
    write_certificate(store, "r1", upkeep.home)
    assert store_certificate(store, "r1", upkeep.home) == ""
    store.documents.put("r1", LateLogsDocument({MemberKey(TRAIN, 1, "node-b"): LateLogs(done=True, tries=1)}))
    store.runs.finish("r1", Status.FAILED, "another verdict", NOW)
    write_certificate(store, "r1", upkeep.home)
    put = ObjectStore.put

    def ends(self: ObjectStore, name: str, file: Path) -> int:
        if name.endswith("/certificate.json"):
            raise KeyboardInterrupt
        return put(self, name, file)

    monkeypatch.setattr(ObjectStore, "put", ends)
    with pytest.raises(KeyboardInterrupt):
        store_certificate(store, "r1", upkeep.home)
    monkeypatch.setattr(ObjectStore, "put", put)
    assert not matching(objects / "runs" / "r1")
    late_logs(upkeep)
    assert not matching(objects / "runs" / "r1"), "a process may still be writing"
    shutil.rmtree(upkeep.home / "runs")
    later = dataclasses.replace(upkeep, now=time.time() + STORING_S)
    assert late_logs(later).endswith("; 1 certificate stored again")
    assert matching(objects / "runs" / "r1")
    document = store.documents.get("r1", CertificateDocument)
    assert document is not None
    assert json.loads((objects / "runs" / "r1" / "certificate.json").read_text()) == document.root
    assert not late_logs(later).endswith("stored again")
    assert messages == []


def test_certificate_that_cannot_be_stored_again_is_reported(
    store: Store, upkeep: Upkeep, messages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIPCFLOW_STORE", f"file://{upkeep.home}/unmounted")
    lose(store, "r1")
    write_certificate(store, "r1", upkeep.home)
    assert "does not exist on this machine" in store_certificate(store, "r1", upkeep.home)
    later = dataclasses.replace(upkeep, now=time.time() + STORING_S)
    late_logs(later)
    assert [message.partition(": ")[0] for message in messages] == ["run r1"]
    assert "does not exist on this machine" in messages[0]
    (upkeep.home / "unmounted").mkdir()
    assert late_logs(later).endswith("; 1 certificate stored again")
    assert (upkeep.home / "unmounted" / "runs" / "r1" / "certificate.json").is_file()


def matching(folder: Path) -> bool:
    """Whether the signature in a folder is that of its certificate."""
    stated = attested(json.loads((folder / "certificate.dsse.json").read_text()))
    return stated.sha256 == hashlib.sha256((folder / "certificate.json").read_bytes()).hexdigest()

"""Facts of a finished run -> check results, verdict and certificate, all stored."""

import time
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tipcflow.check import verdict, verdict_reasons
from tipcflow.check.baseline.detector_limits import gate_section
from tipcflow.check.evidence import evidence_section, found_in, proven_by
from tipcflow.config.loader import load_yaml
from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.config.run_documents import PolicyDocument
from tipcflow.config.settings import settings
from tipcflow.config.suite import find_config
from tipcflow.domain import ConfigError, InfraError, Run, Status, TipcflowError
from tipcflow.domain.run.kept_files import SignedDocument, StoringDocument
from tipcflow.domain.run_documents import (
    CertificateDocument,
    EvidenceDocument,
    FoundDocument,
    GateDocument,
    MergeBaseDocument,
)
from tipcflow.execute.collect.kept_files import CERTIFICATE, SIGNATURE
from tipcflow.execute.collect.run_files import run_prefix
from tipcflow.execute.collect.store_files import certified_files
from tipcflow.execute.objects.object_store import object_store
from tipcflow.execute.quarantine.applied import note_quarantined
from tipcflow.execute.quarantine.release import release_clean
from tipcflow.execute.request import RequestDocument
from tipcflow.execute.verdict import confirm
from tipcflow.execute.verdict.check_context import build_check_context, declared_prints
from tipcflow.execute.verdict.judged_times import judge_as_of, judged_times
from tipcflow.execute.verdict.log_errors import with_log_errors
from tipcflow.execute.verdict.signature import sign_certificate, signing_key
from tipcflow.report import Basis, as_text, certificate

if TYPE_CHECKING:
    from tipcflow.store import Store


# Time limit for the change-point detector's self-assessment, seconds; a precise one takes 0.15 s per metric.
GATE_S = 1.0


@dataclass(frozen=True)
class Judged:
    """The verdict: the run's status, a one-line reason, and the parts of the reason."""

    status: Status
    reason: str
    parts: tuple[str, ...] = ()


def judge_run(
    store: "Store", run_id: str, *, rules: Policy, references: References, home: Path | None = None
) -> Judged:
    """Run every check, store the results, and return the verdict.

    A run that was judged before is judged against the runs, decisions and quarantines of then (`judged_times`).

    Args:
        rules, references: as of the resolution of the run.
        home: where the logs are that reasons quote; None to quote none.
    """
    run, now = store.runs.get(run_id), store.now()
    times = judged_times(store, run)
    if run.trigger == confirm.TRIGGER:
        rules = rules.showing_numbers()  # the confirmed run evaluates them
    release_clean(store, run)
    facts = store.history.facts(run_id, losses=declared_prints(store, run_id).losses)
    context, results = judge_as_of(
        facts, times, lambda at: build_check_context(store, run, rules=rules, references=references, as_of=at)
    )
    if home is not None:
        results = with_log_errors(results, run_id, home)
    confirms = context.confirmation.values if context.confirmation else {}
    store.history.cache_numbers(run_id, facts.measurements, confirms)
    store.checks.replace(run_id, results)
    note_quarantined(store, run_id, results)
    proven = proven_by(results)
    store.documents.put(run_id, EvidenceDocument(evidence_section(facts, context, proven)))
    store.documents.put(run_id, FoundDocument(tuple(sorted(found_in(facts, context.prints) | proven))))
    store.documents.put(run_id, GateDocument(gate_section(context.history, rules, within_s=GATE_S)))
    store.documents.put(run_id, times.document(now))
    return Judged(*verdict(facts, results), parts=tuple(verdict_reasons(facts, results)))


def load_policy(name: str, config_dir: Path) -> Policy:
    """Load the policy with that name (or that YAML file)."""
    return load_yaml(find_config(name, config_dir / "policies", what="policy"), Policy)


def policy_of(store: "Store", run: Run, name: str, config_dir: Path) -> Policy:
    """Load the named policy; without a name the run's own policy, or `pr` if it has none."""
    document = None if name else store.documents.get(run.id, PolicyDocument)
    if document:
        return document.root
    return load_policy(name or "pr", config_dir).for_model(run.suite, run.model)


def load_references(suite: str, config_dir: Path) -> References:
    """Load the suite's accuracy targets; none if it has no file."""
    path = config_dir / "references" / f"{suite}.yaml"
    return load_yaml(path, References) if path.is_file() else References(suite=suite)


def why_unsigned(store: "Store", run_id: str, home: Path) -> str:
    """Return why this process cannot sign the certificate of a run that needs a signature; '' otherwise.

    A certificate needs a signature with TIPCFLOW_SIGNING_KEY, and if an earlier process wrote one of the run with
    that setting, even if its key was not usable. The text also names what to repair.
    """
    try:
        if settings().signing_key is not None:
            store.documents.put(run_id, SignedDocument())  # before the key is read: it may not be usable
        if signing_key() is not None or not _was_signed(store, run_id, home):
            return ""
    except ConfigError as error:
        return f"the certificate cannot be signed: {error.message}"
    except InfraError as error:
        return f"an earlier certificate may be signed, and TIPCFLOW_SIGNING_KEY is not set here: {error.message}"
    return "the run's certificate needs a signature: set TIPCFLOW_SIGNING_KEY for this process, which has no key"


def _was_signed(store: "Store", run_id: str, home: Path) -> bool:
    """Whether a certificate of the run was signed, or was to be: by its document, or by a signature here or in the
    object store.

    Runs that were signed by an earlier version have no document yet: it is stored with the first call that finds
    the signature, because the caller may remove the signature.

    Raises:
        InfraError: the object store cannot be reached.
    """
    if store.documents.get(run_id, SignedDocument) is not None:
        return True
    objects = object_store()
    is_here = (home / "runs" / run_id / SIGNATURE).is_file()
    if not is_here and (objects is None or objects.find(f"{run_prefix(run_id)}/{SIGNATURE}") is None):
        return False
    store.documents.put(run_id, SignedDocument())
    return True


def write_certificate(
    store: "Store", run_id: str, home: Path, *, ended: Run | None = None, sign: bool = True
) -> Path:
    """Create the run's certificate, store it, and write it to `<home>/runs/<run>/certificate.json`.

    A signature of an earlier certificate is removed.

    Args:
        ended: the run with the status that it gets; None: as it is stored.
        sign: whether to sign with the key of TIPCFLOW_SIGNING_KEY, if there is one.

    Raises:
        ConfigError: the key is not usable; the certificate is written, without a signature.
    """
    folder = home / "runs" / run_id
    folder.mkdir(parents=True, exist_ok=True)
    documents = store.documents.several(run_id, (GateDocument, EvidenceDocument))
    gate, evidence = documents.get(GateDocument), documents.get(EvidenceDocument)
    document = certificate(
        store.history.facts(run_id),
        ended or store.runs.get(run_id),
        store.checks.results(run_id),
        basis=_basis(store, run_id),
        gate=gate.root if gate else None,
        evidence=evidence.root if evidence else None,
        files=certified_files(store, run_id, folder),
        versions={"tipcflow": version("tipcflow")},
    )
    store.documents.put(run_id, CertificateDocument(document))
    return _write(store, run_id, document, folder, sign=sign)


def _basis(store: "Store", run_id: str) -> Basis:
    """Return what the run's request set for its verdict."""
    documents = store.documents.several(run_id, (RequestDocument, MergeBaseDocument, PolicyDocument))
    request, base = documents.get(RequestDocument), documents.get(MergeBaseDocument)
    policy = documents.get(PolicyDocument)
    return Basis(
        base=(request.root.base or "") if request else "",
        merge_base=base.commit if base else "",
        drop=request.root.drop if request else (),
        policy=policy.root.name if policy else "",
        limits=policy.body() if policy else {},
    )


def _write(store: "Store", run_id: str, document: dict[str, Any], folder: Path, *, sign: bool) -> Path:
    """Write a certificate and its signature to the run's folder; return the certificate's path."""
    path = folder / CERTIFICATE
    path.with_name(SIGNATURE).unlink(missing_ok=True)
    path.write_text(as_text(document), encoding="utf-8")
    if sign and (key := signing_key()):
        store.documents.put(run_id, SignedDocument())
        sign_certificate(document, path, key)
    return path


def store_certificate(store: "Store", run_id: str, home: Path) -> str:
    """Write the run's certificate and signature to the object store, if there is one; return why not, or ''.

    The database has the certificate, too, but not its signature. A signature of an earlier certificate is
    removed; that there was one remains known. Two objects cannot be replaced at once: the database has a
    StoringDocument until both are written, so that another process writes them again if this one ends before.
    """
    objects, folder = object_store(), home / "runs" / run_id
    if objects is None:
        return ""
    signature, stored = folder / SIGNATURE, f"{run_prefix(run_id)}/{SIGNATURE}"
    store.documents.put(run_id, StoringDocument(since=time.time()))
    try:
        # A certificate is there only with its signature: that is written first.
        if signature.is_file():
            objects.put(stored, signature)
        elif objects.find(stored) is not None:
            # The store may not have responded to `why_unsigned`.
            store.documents.put(run_id, SignedDocument())
            objects.remove([stored])
        objects.put(f"{run_prefix(run_id)}/{CERTIFICATE}", folder / CERTIFICATE)
    except TipcflowError as error:
        return f"the certificate is not stored: {error.message}"
    store.documents.remove(run_id, StoringDocument)
    return ""


def restore_certificate(store: "Store", run_id: str, home: Path) -> str:
    """Write the database's certificate of a run to the object store, with a new signature; return why not, or ''.

    Both are also written to the run's folder here.
    """
    document = store.documents.get(run_id, CertificateDocument)
    if document is None:
        return "the database has no certificate of the run"
    if unsigned := why_unsigned(store, run_id, home):
        return f"the certificate is not stored: {unsigned}"
    folder = home / "runs" / run_id
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write(store, run_id, document.root, folder, sign=True)
    except (TipcflowError, OSError) as error:
        return f"the certificate is not stored: {error}"
    return store_certificate(store, run_id, home)

"""Facts of a finished run -> check results, verdict and certificate, all stored."""

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.check import judge, verdict, why
from tipcflow.check.baseline.detector_limits import gate_section
from tipcflow.check.evidence import evidence_section, found_in
from tipcflow.config.loader import load_yaml
from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.config.suite import find_config
from tipcflow.domain import Run, Status
from tipcflow.execute.collect.log_archive import compress_logs, content_hash, is_log, plain_name
from tipcflow.execute.events import EVENTS
from tipcflow.execute.verdict import confirm
from tipcflow.execute.verdict.check_context import context_of
from tipcflow.report import as_text, certificate
from tipcflow.report.meaning import WHY

if TYPE_CHECKING:
    from tipcflow.store import Store


# Time limit for the change-point detector's self-assessment, seconds; a precise one takes 0.15 s per metric.
GATE_S = 1.0
GATE = "gate"
# Expected evidence compared with the found evidence; later runs must have it as well.
EVIDENCE, FOUND = "evidence", "found"


@dataclass(frozen=True)
class Judged:
    """The verdict: the run's status and a one-line reason."""

    status: Status
    reason: str


def judge_run(store: "Store", run_id: str, *, rules: Policy, references: References) -> Judged:
    """Run every check, store the results, and return the verdict.

    Args:
        rules, references: as of the resolution of the run.
    """
    run = store.get_run(run_id)
    if run.trigger == confirm.TRIGGER:
        rules = rules.showing_numbers()  # the confirmed run evaluates them
    facts = store.facts(run_id)
    context = context_of(store, run, rules=rules, references=references)
    results = judge(facts, context)
    store.set_check_results(run_id, results)
    store.put_document(run_id, EVIDENCE, evidence_section(facts, context))
    store.put_document(run_id, FOUND, sorted(found_in(facts, context.prints)))
    store.put_document(run_id, GATE, gate_section(context.history, rules, within_s=GATE_S))
    judged = Judged(*verdict(facts, results))
    store.put_document(run_id, WHY, {"line": judged.reason, "parts": why(facts, results)})
    return judged


def load_policy(name: str, config_dir: Path) -> Policy:
    """Load the policy with that name (or that YAML file)."""
    return load_yaml(find_config(name, config_dir / "policies", what="policy"), Policy)


def policy_of(store: "Store", run: Run, name: str, config_dir: Path) -> Policy:
    """Load the named policy; without a name the run's own policy, or `pr` if it has none."""
    kept = None if name else store.document(run.id, "policy")
    if kept:
        return Policy.model_validate(kept)
    return load_policy(name or "pr", config_dir).settled(run.suite, run.model)


def load_references(suite: str, config_dir: Path) -> References:
    """Load the suite's accuracy targets; none if it has no file."""
    path = config_dir / "references" / f"{suite}.yaml"
    return load_yaml(path, References) if path.is_file() else References(suite=suite)


def write_certificate(store: "Store", run_id: str, home: Path) -> Path:
    """Create the run's certificate, store it, and write it to `<home>/runs/<run>/certificate.json`.

    This is the last step of a run: its large logs are compressed then.
    """
    folder = home / "runs" / run_id
    folder.mkdir(parents=True, exist_ok=True)
    document = certificate(
        store.facts(run_id),
        store.get_run(run_id),
        store.check_results(run_id),
        gate=store.document(run_id, GATE),
        evidence=store.document(run_id, EVIDENCE),
        files=_hashes(folder),
        versions={"tipcflow": version("tipcflow")},
    )
    store.put_document(run_id, "certificate", document)
    path = folder / "certificate.json"
    path.write_text(as_text(document), encoding="utf-8")
    compress_logs(folder)
    return path


def _hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file collected from the nodes, by path in the run's folder; for a compressed log
    the hash of its content under its original name."""
    ours = {"certificate.json", EVENTS}
    found = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    files = sorted(path for path in found if path.name not in ours)
    names = [str(path.relative_to(folder)) for path in files]
    names = [plain_name(name) if is_log(name) else name for name in names]
    return {name: content_hash(folder / name) for name in names}

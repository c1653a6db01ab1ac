"""The certificate: one JSON per run that links config, suite, environment, outputs and verdict by hash.

Its fields are described in docs/reference/certificate.md. `links` is a hash chain over the sections in the order
of `LINKS`: each link's hash covers its section and the previous link, so no section can be replaced alone.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tipcflow.domain import CheckResult, Facts, Run, StepKind
from tipcflow.report.canonical import canonical, plain, sha256
from tipcflow.report.sections import (
    Basis,
    check_entry,
    config_section,
    counts,
    environment_section,
    framework_section,
    leg_entry,
    leg_status,
    measurements_section,
    outputs_section,
    step_entry,
    step_status,
    suite_section,
)

SCHEMA = "tipcflow.certificate/1"

# The sections in pipeline order. `gate` and `evidence` were added later; certificates without them are valid.
LINKS = (
    "config",
    "suite",
    "framework",
    "environment",
    "checkpoint",
    "export",
    "steps",
    "legs",
    "measurements",
    "evidence",
    "checks",
    "gate",
    "files",
    "verdict",
)


# Sections that older certificates lack.
ADDED = frozenset({"gate", "evidence"})


def certificate(
    facts: Facts,
    run: Run,
    results: Iterable[CheckResult],
    *,
    basis: Basis | None = None,
    gate: Mapping[str, Any] | None = None,
    evidence: Sequence[Mapping[str, Any]] | None = None,
    files: Mapping[str, str] | None = None,
    versions: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The certificate of a judged run, as plain JSON values.

    Args:
        run: with its status and reason.
        basis: what the run was compared with, and by which policy.
        gate: the change-point detector's limits on the compared metrics; None if not computed.
        evidence: expected and found evidence, piece by piece; None if not computed.
        files: path in the run's folder -> SHA-256 of collected files (logs, artefacts).
        versions: of the software that judged it (`{"tipcflow": "0.1.0"}`).
    """
    checked = tuple(results)
    steps = facts.plan.steps
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "config": config_section(facts, basis or Basis()),
        "suite": suite_section(run),
        "framework": framework_section(run, facts, versions or {}),
        "environment": environment_section(run, facts.node_facts),
        "checkpoint": outputs_section(facts, {StepKind.TRAIN}),
        "export": outputs_section(facts, {StepKind.EXPORT}),
        "steps": [step_entry(facts, step) for step in steps],
        "legs": [leg_entry(facts, step, leg) for step in steps for leg in step.legs],
        "measurements": measurements_section(facts),
        "reporter": facts.reporter,
        "checks": [check_entry(result) for result in checked],
        "evidence": [dict(piece) for piece in evidence or ()],
        "gate": dict(gate or {}),
        "files": dict(files or {}),
        "verdict": {
            "run": run.id,
            "chain": run.chain,
            "trigger": run.trigger,
            "status": run.status,
            "reason": run.reason,
            "created_at": run.created_at,
            "ended_at": run.ended_at,
            "counts": {
                "steps": counts(step_status(facts, step) for step in steps),
                "legs": counts(leg_status(facts, step, leg) for step in steps for leg in step.legs),
                "checks": counts(result.status for result in checked),
            },
        },
    }
    made: dict[str, Any] = plain(content)
    made["links"] = links(made)
    made["sha256"] = sha256(made)
    return made


def links(content: Mapping[str, Any]) -> list[dict[str, str]]:
    """The hash chain over the certificate's sections."""
    chain, before = [], ""
    for name in sections(content):
        before = hashlib.sha256(before.encode() + canonical(content.get(name))).hexdigest()
        chain.append({"section": name, "sha256": before})
    return chain


def sections(content: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the sections that a certificate must have."""
    return tuple(name for name in LINKS if name in content or name not in ADDED)


def as_text(made: Mapping[str, Any]) -> str:
    """The certificate as file content: indented, keys in their order, one trailing newline."""
    return json.dumps(plain(dict(made)), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

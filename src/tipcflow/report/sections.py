"""The sections of a certificate, each a plain JSON value built from a run's facts."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from tipcflow.domain import (
    CheckResult,
    ExitRecord,
    Facts,
    Failure,
    Leg,
    LegKey,
    NodeFacts,
    Phase,
    Run,
    Status,
    Step,
    StepKind,
    last_attempts,
)
from tipcflow.domain.run.names import FrameworkVersion
from tipcflow.report.canonical import sha256

# Node facts that change constantly; they would make certificates of the same environment differ.
_VOLATILE = {"disk_free_bytes", "memory_available_bytes", "clock_skew_s", "unreachable"}

_CHECK_FIELDS = ("check", "status", "reason", "step", "leg", "metric", "gating", "values")


@dataclass(frozen=True)
class Basis:
    """What a request set for the verdict: what the run is compared with, what it leaves out, and by which limits.

    Attributes:
        base: the requested base of a tested change, as given; '' without one.
        merge_base: the commit that it stands for.
        drop: patterns of the legs that the run leaves out.
        policy: name of the policy, '' if the run ended before it was read.
        limits: all values of the policy, with its overrides applied.
    """

    base: str = ""
    merge_base: str = ""
    drop: Sequence[str] = ()
    policy: str = ""
    limits: Mapping[str, Any] = field(default_factory=dict)

    def section(self) -> dict[str, Any]:
        """Return the fields of the certificate."""
        return {
            "base": self.base,
            "merge_base": self.merge_base,
            "drop": list(self.drop),
            "policy": self.policy,
            "policy_sha256": sha256(self.limits) if self.limits else "",
        }


def config_section(facts: Facts, basis: Basis) -> dict[str, Any]:
    """The params file, the plan, and what the request set for the verdict."""
    plan = facts.plan
    return {
        "params_file": plan.params_file,
        "params_sha256": plan.params_sha256,
        # New fields with default values do not change the hash of an older plan.
        "plan_sha256": sha256(plan.model_dump(mode="python", exclude_defaults=True)),
        "dialect": plan.dialect,
        "mode": plan.mode,
        "compat": plan.compat,
        "seed": plan.seed,
        "repeats": plan.repeats,
        "diagnose": plan.diagnose,
        **basis.section(),
        "substitutions": [substitution.model_dump() for substitution in plan.substitutions],
        "quirks": [quirk.model_dump() for quirk in plan.quirks],
    }


def suite_section(run: Run) -> dict[str, Any]:
    """The tested content of the suite."""
    return {"name": run.suite, "model": run.model, "commit": run.suite_commit, "sha256": run.suite_sha256}


def environment_section(run: Run, nodes: Iterable[NodeFacts]) -> dict[str, Any]:
    """The run's environment class, and the facts that each node reported."""
    facts = [node.model_dump(mode="python", exclude=_VOLATILE, exclude_defaults=True) for node in nodes]
    return {
        "class": run.environment,
        "cluster": run.cluster,
        "nodes": sorted(facts, key=lambda entry: str(entry["node"])),
    }


def framework_section(run: Run, facts: Facts, versions: Mapping[str, str]) -> dict[str, Any]:
    """The framework as reported by the nodes, and the versions of the software that judged the run."""
    reported = {
        node.node: f"{FrameworkVersion(node.framework, node.framework_version)} {node.framework_commit}".strip()
        for node in facts.node_facts
    }
    return {"name": run.framework, "on_nodes": reported, "versions": dict(versions)}


def outputs_section(facts: Facts, kinds: set[StepKind]) -> list[dict[str, Any]]:
    """Expected output files of steps of these kinds, with hashes; one entry per (step, node, path)."""
    steps = {step.id: step for step in facts.plan.steps if step.kind in kinds}
    return [
        {"step": record.step, "node": record.node, **output.model_dump()}
        for record in sorted(facts.records, key=lambda item: (item.step, item.node))
        if record.step in steps
        for output in sorted(record.outputs, key=lambda file: file.path)
    ]


def step_entry(facts: Facts, step: Step) -> dict[str, Any]:
    """One step: status, reason, and how its jobs ended."""
    records = [item for item in facts.records if item.step == step.id and not item.leg]
    return {
        "id": step.id,
        "kind": step.kind,
        "status": step_status(facts, step),
        "reason": facts.step_reason.get(LegKey(step.id)) or step.not_run,
        "failure": _failure(facts.failures.get(step.id)),
        "nodes": list(step.nodes),
        "ranks": [report.model_dump() for report in facts.ranks.get(step.id, ())],
        "ends": [_end(record) for record in sorted(records, key=lambda item: item.node)],
    }


def _failure(failure: Failure | None) -> dict[str, Any] | None:
    """The failure of a step's last attempt; None if it succeeded."""
    if failure is None:
        return None
    fields = ("node", "rank", "leg", "log_line", "followers", "evidence")
    return {"class": failure.failure_class, **{name: getattr(failure, name) for name in fields}}


def leg_entry(facts: Facts, step: Step, leg: Leg) -> dict[str, Any]:
    """One leg: status, declared settings, actual settings, hash of its predictions."""
    key = LegKey(step.id, leg.id)
    predictions = facts.predictions.get(key, {})
    declared = ("device", "onednn", "tensorrt", "precision", "threads", "batch_size")
    return {
        "step": step.id,
        "id": leg.id,
        "status": leg_status(facts, step, leg),
        "reason": facts.step_reason.get(key) or leg.not_run or step.not_run,
        "declared": {name: getattr(leg, name) for name in declared},
        "actual": facts.engine.get(key, {}),
        "autolog": facts.autolog.get(key, {}),
        "predictions": len(predictions),
        "predictions_sha256": sha256(predictions) if predictions else "",
        "ends": [_end(item) for item in facts.records if item.step == step.id and item.leg == leg.id],
    }


def step_status(facts: Facts, step: Step) -> Status:
    """The status of a step; a step without a status was not started."""
    return facts.step_status.get(step.id) or (Status.NOT_RUN if step.not_run else Status.BLOCKED)


def leg_status(facts: Facts, step: Step, leg: Leg) -> Status:
    """The status of a leg; a leg without a status was not started."""
    default = Status.NOT_RUN if leg.not_run or step.not_run else Status.BLOCKED
    return facts.leg_status.get(LegKey(step.id, leg.id)) or default


def counts(statuses: Iterable[Status]) -> dict[str, int]:
    """The count of each status, mildest first."""
    counter = Counter(statuses)
    return {status.value: counter[status] for status in Status if counter[status]}


def measurements_section(facts: Facts) -> list[dict[str, Any]]:
    """Count, median, minimum and maximum of each (step, leg, phase, metric) of the last attempts."""
    grouped: dict[tuple[str, str, Phase, str, str], list[float]] = {}
    for measurement in last_attempts(facts.measurements):
        grouped.setdefault(
            (measurement.step, measurement.leg, measurement.phase, measurement.metric, measurement.unit), []
        ).append(measurement.value)
    return [
        {
            "step": step,
            "leg": leg,
            "phase": phase,
            "metric": name,
            "unit": unit,
            "count": len(values),
            "median": median(values),
            "min": min(values),
            "max": max(values),
        }
        for (step, leg, phase, name, unit), values in sorted(grouped.items())
    ]


def check_entry(result: CheckResult) -> dict[str, Any]:
    """One check's result."""
    return {name: getattr(result, name) for name in _CHECK_FIELDS}


def _end(record: ExitRecord) -> dict[str, Any]:
    return {
        "node": record.node,
        "attempt": record.attempt,
        "reason": record.reason,
        "exit_code": record.exit_code,
        "signal": record.signal,
        "message": record.message,
        "seconds": round(record.duration_s, 3),
        "killed": record.killed,
        **({"servers_finished": record.servers_finished} if record.servers_finished else {}),
        "peak_rss_bytes": record.peak_rss_bytes,
        "peak_gpu_bytes": record.peak_gpu_bytes,
        **({"observed": record.observed.model_dump()} if record.observed else {}),
        "probe": [process.model_dump(exclude_defaults=True) for process in record.processes]
        if record.probed
        else None,
    }

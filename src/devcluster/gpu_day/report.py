"""Report of the checks: report.json with all facts, and report.md for readers."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from devcluster.gpu_day.execution import Outcome
from devcluster.gpu_day.machine import describe_gpus
from devcluster.gpu_day.options import Options
from tipcflow.domain import Status
from tipcflow.domain.numbers.units import duration, percentage, size, utc
from tipcflow.install.uv import requirements_dir
from tipcflow.report.text.markdown_text import cell, table

_SCHEMA_VERSION = 1
_LEG_METRICS = ("inference_time", "gpu_rss", "gpu_util")


def make_document(
    options: Options, machine: dict[str, Any], outcomes: Sequence[Outcome], started: float, seconds: float
) -> dict[str, Any]:
    """Return the report as a JSON document.

    Args:
        machine: the facts of `read_machine`.
        started: seconds since the epoch.
        seconds: since then.
    """
    versions: dict[str, Any] = {"tipcflow": _tipcflow_version()}
    for outcome in outcomes:
        versions |= outcome.figures.get("versions", {})
    return {
        "schema_version": _SCHEMA_VERSION,
        "status": worst(outcomes).value,
        "started": utc(started),
        "seconds": round(seconds, 1),
        "wheels": options.wheels,
        "offline": options.offline,
        "torch_python": options.torch_python,
        "machine": machine,
        "versions": versions,
        "parts": [_part(outcome) for outcome in outcomes],
    }


def worst(outcomes: Sequence[Outcome]) -> Status:
    """Return the worst status; a blocked part counts with the part that blocks it."""
    statuses = [outcome.status for outcome in outcomes if outcome.status is not Status.BLOCKED]
    return max(statuses, key=lambda status: status.severity, default=Status.NOT_RUN)


def _part(outcome: Outcome) -> dict[str, Any]:
    part = outcome.part
    commands = [
        {"command": ran.command, "exit_code": ran.code, "seconds": round(ran.seconds, 1), "logs": list(ran.logs)}
        for ran in outcome.ran
    ]
    return {
        "part": part.id,
        "title": part.title,
        "gpus_needed": part.gpus,
        "status": outcome.status.value,
        "reason": outcome.reason,
        "seconds": round(outcome.seconds, 1),
        "commands": commands,
        "results": {kind: value for kind, value in outcome.figures.items() if kind != "versions"},
    }


def _tipcflow_version() -> str:
    """Return the version of this installation, with the commit of the clone if it is one."""
    try:
        number = version("tipcflow")
    except PackageNotFoundError:
        number = "unknown"
    root = str(requirements_dir().parent)
    done = subprocess.run(["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return f"{number} {done.stdout.strip()}".strip()


def write_report(document: dict[str, Any], output: Path) -> None:
    """Write report.json and report.md; each replaces its predecessor in one step."""
    texts = {"report.json": json.dumps(document, indent=2) + "\n", "report.md": markdown(document)}
    for name, text in texts.items():
        draft = output / f".{name}"
        draft.write_text(text, encoding="utf-8")
        draft.replace(output / name)


def markdown(document: dict[str, Any]) -> str:
    """Return the report for readers."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: dict[str, Any]) -> Iterator[str]:
    machine = document["machine"]
    yield f"# GPU checks: {document['status']}\n"
    yield f"{document['started']} UTC, {duration(document['seconds'])}\n"
    facts = {
        "GPUs": describe_gpus(machine),
        "driver": f"{machine['driver']}, for CUDA up to {machine.get('cuda_of_driver', 'unknown')}",
        "host": f"{machine['hostname']}, {machine['os']}, kernel {machine['kernel']}, {machine['architecture']}",
        "CPU": f"{machine['cpu_count']} x {machine['cpu_model']}, {size(machine['memory_bytes'])} memory",
        "wheels": f"{document['wheels'] or 'package index'}{' (offline)' if document['offline'] else ''}",
        **({"PyTorch of": document["torch_python"]} if document["torch_python"] else {}),
        **{name: str(value) for name, value in document["versions"].items()},
    }
    yield table(("fact", "value"), facts.items())
    yield "\n## Parts\n"
    rows = [
        (part["part"], part["title"], part["status"], duration(part["seconds"]), part["reason"])
        for part in document["parts"]
    ]
    yield table(("part", "what", "status", "time", "reason"), rows)
    for part in document["parts"]:
        yield from _results(part)
    yield "\n## Commands\n"
    yield "`$OUT` is the folder of this report; standard output and errors are in its folder `logs`.\n"
    for part in document["parts"]:
        yield from _commands(part)


def _commands(part: dict[str, Any]) -> Iterator[str]:
    if not part["commands"]:
        return
    yield f"{part['part']}:\n\n```"
    for ran in part["commands"]:
        result = "ended" if ran["exit_code"] is None else f"exit code {ran['exit_code']}"
        yield f"{ran['command']}\n  # {result}, {duration(ran['seconds'])}, {ran['logs'][0]}"
    yield "```\n"


def _results(part: dict[str, Any]) -> Iterator[str]:
    results = part["results"]
    if not results:
        return
    yield f"\n## {part['part']}: {cell(part['title'])}\n"
    if "run" in results:
        counts = ", ".join(f"{count} {status}" for status, count in results["run"]["checks"].items())
        yield f"run {results['run']['id']}; checks: {counts or 'none'}\n"
    if results.get("legs"):
        metrics = [name for name in _LEG_METRICS if any(leg.get(name) for leg in results["legs"])]
        columns = ("step", "leg", "status", *metrics, "reason")
        yield table(columns, [[leg.get(name) or "" for name in columns] for leg in results["legs"]])
    for line in results.get("text", []):
        yield f"    {line}"
    if "nodes" in results:
        yield table(("where", "check", "state", "result or fix"), _findings(results["nodes"]))
    yield from _scaling(results.get("scaling", {}))


def _findings(document: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Return the rows of `tipcflow doctor` about the node, and all that are not ok."""
    return [
        (
            entry["where"],
            entry["what"],
            "ok" if entry["ok"] else "fix",
            entry["found"] if entry["ok"] else entry["fix"],
        )
        for entry in document.get("findings", [])
        if entry["where"] != "here" or not entry["ok"]
    ]


def _scaling(document: dict[str, Any]) -> Iterator[str]:
    rows: dict[str, dict[str, Any]] = next(iter(document.get("models", {}).values()), {})
    entries = []
    for entry in document.get("topologies", []):
        row = rows.get(entry["topology"], {})
        speed = f"{row['median_speed']:.2f}" if row else ""
        gain = f"{row['speedup']:.2f}" if row.get("speedup") is not None else ""
        share = percentage(row["efficiency"]) if row.get("efficiency") is not None else ""
        # Without the hint of an error.
        reason = entry["reason"].split("\n", 1)[0]
        entries.append((entry["topology"], entry["status"], speed, gain, share, reason))
    if entries:
        yield table(("topology", "status", "samples/s (median)", "speed-up", "efficiency", "reason"), entries)
    for note in document.get("notes", []):
        yield f"\nnote: {cell(note)}"

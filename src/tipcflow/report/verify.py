"""Verifies a certificate: hashes, and whether the verdict follows from its content."""

from collections.abc import Mapping
from typing import Any

from tipcflow.domain import Status, StepKind, run_status
from tipcflow.report.canonical import canonical, sha256
from tipcflow.report.certificate import SCHEMA, links, sections
from tipcflow.report.sections import counts

_EXECUTED = {Status.PASS, Status.IMPROVEMENT, Status.UNCONFIRMED, Status.REGRESSION, Status.FAILED}
# Verdicts that an `infra_failure` of the run may replace: something was left on a node, its tasks died without a
# stop by a user, or the certificate could not be signed or stored.
_REPLACED = {Status.PASS, Status.IMPROVEMENT, Status.UNCONFIRMED, Status.CANCELLED}
# Bytes of a name and of a path that Linux accepts.
_NAME, _PATH = 255, 4096
# Characters of a path in a message.
_SHOWN = 100


def verify(made: Any, *, files: Mapping[str, str] | None = None) -> list[str]:
    """The problems of a certificate; empty if it is valid.

    Args:
        made: the parsed JSON.
        files: path -> SHA-256 of the current files, to compare with those in the certificate.
    """
    if not isinstance(made, dict) or made.get("schema") != SCHEMA:
        schema = made.get("schema") if isinstance(made, dict) else type(made).__name__
        return [f"not a certificate: schema {schema!r}, expected {SCHEMA!r}"]
    missing = [name for name in (*sections(made), "links", "sha256") if name not in made]
    if missing:
        return [f"section {name} is missing" for name in missing]
    if not isinstance(made["links"], list) or not isinstance(made["files"], dict):
        return ["links or files cannot be read"]
    problems = []
    content = {key: value for key, value in made.items() if key != "sha256"}
    if sha256(content) != made["sha256"]:
        problems.append("the certificate was modified: its content does not match its hash")
    problems += _broken_link(made)
    problems += _unfounded(made)
    for path, stated in made["files"].items():
        if refused := path_problem(path):
            problems.append(refused)
        elif files is not None and (path not in files or files[path] != stated):
            problems.append(f"file {path} {'is missing' if path not in files else 'was changed'}")
    return problems


def verify_run(made: Mapping[str, Any], *, run: str, status: str, stored: Mapping[str, Any] | None) -> list[str]:
    """The problems of a certificate as that of a run; empty if it is the one that the database has.

    Args:
        made: the parsed JSON.
        status: of the run in the database, '' if the run has none yet.
        stored: the run's certificate in the database, None if it has none.
    """
    problems = []
    if (owner := run_of(made)) != run:
        problems.append(f"the certificate is of run {owner or '(none)'}, not of run {run}")
    if (stated := status_of(made)) != status:
        problems.append(f"the certificate states {stated or 'no status'}; the run has {status or 'no status'}")
    if stored is None:
        return [*problems, f"the database has no certificate of run {run}"]
    names = [name for name in dict.fromkeys((*stored, *made)) if name not in ("links", "sha256")]
    differing = [name for name in names if canonical(made.get(name)) != canonical(stored.get(name))]
    if differing:
        problems.append(f"the certificate differs from that in the database: {', '.join(differing)}")
    return problems


def run_of(made: Mapping[str, Any]) -> str:
    """The ID of the run that a certificate states, '' without one."""
    return _stated(made, "run")


def status_of(made: Mapping[str, Any]) -> str:
    """The status that a certificate states, '' without one."""
    return _stated(made, "status")


def path_problem(path: str) -> str:
    """The problem of a listed path that is not one of a file in the run's folder, '' without a problem."""
    shown = path if len(path) <= _SHOWN else f"{path[:_SHOWN]}… ({len(path)} characters)"
    if path.startswith("/") or ".." in path.split("/"):
        return f"the certificate lists a path outside of the run's folder: {shown!r}"
    try:
        parts = path.encode().split(b"/")
    except UnicodeEncodeError:  # lone surrogates
        parts = []
    is_possible = 0 < len(b"/".join(parts)) <= _PATH and max(map(len, parts)) <= _NAME and "\0" not in path
    return "" if is_possible else f"the certificate lists a path that no file can have: {shown!r}"


def _stated(made: Mapping[str, Any], field: str) -> str:
    verdict = made.get("verdict")
    return str(verdict.get(field) or "") if isinstance(verdict, dict) else ""


def _broken_link(made: dict[str, Any]) -> list[str]:
    """The first section that does not match its link; later sections cannot match either."""
    for stated, real in zip(made["links"], links(made), strict=False):
        if stated != real:
            return [f"section {real['section']} was changed after the certificate was written"]
    return [] if len(made["links"]) == len(sections(made)) else ["links are missing"]


def _unfounded(made: dict[str, Any]) -> list[str]:
    """Whether the stated status follows from the steps, legs and gating checks in the certificate."""
    try:
        steps = [(step["kind"], Status(step["status"])) for step in made["steps"]]
        legs = [Status(leg["status"]) for leg in made["legs"]]
        checks = [Status(check["status"]) for check in made["checks"] if check["gating"]]
        stated = Status(made["verdict"]["status"])
    except (KeyError, TypeError, ValueError) as error:
        return [f"a status cannot be read: {error}"]
    trainings = [status for kind, status in steps if kind == StepKind.TRAIN and status is not Status.NOT_RUN]
    follows = run_status(
        [*(status for _, status in steps), *legs, *checks],
        executed_steps=sum(status in _EXECUTED for _, status in steps),
        trained=bool(trainings) and all(status is Status.PASS for status in trainings),
        trains=any(kind == StepKind.TRAIN for kind, _ in steps),
    )
    problems = []
    if follows is not stated and not (stated is Status.INFRA_FAILURE and follows in _REPLACED):
        problems.append(f"stored verdict {stated}; content evaluates to {follows}")
    every = [Status(check["status"]) for check in made["checks"]]
    counted = {"steps": counts(status for _, status in steps), "legs": counts(legs), "checks": counts(every)}
    if made["verdict"].get("counts") != counted:
        problems.append("the verdict's counts do not match its steps, legs and checks")
    return problems

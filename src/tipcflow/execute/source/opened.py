"""The files of the suite that a run opened, as its nodes recorded them: stored once per chain, mode and commit."""

from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.config.run_documents import OpenedDocument
from tipcflow.domain import InfraError, Plan, Status, StepKind
from tipcflow.domain.run_documents import MergeBaseDocument, SourceDocument
from tipcflow.execute.collect.run_files import RunFiles
from tipcflow.execute.request import RequestDocument
from tipcflow.execute.source.cache import kept_names
from tipcflow.remote.runner.opened_files import MORE, NAME

if TYPE_CHECKING:
    from tipcflow.store import Store

_ACCEPTED = (Status.PASS, Status.IMPROVEMENT)


def note_opened(store: "Store", run_id: str, home: Path) -> None:
    """Store the files that an accepted run opened, if every step has a record.

    Runs of pull requests are left out: code that is not accepted yet must not decide what is selected. So are runs
    of modified files, and those that leave out legs.

    Args:
        home: TIPCFLOW_HOME with the collected files of the run.
    """
    run = store.runs.get(run_id)
    if run.status not in _ACCEPTED or not run.suite_commit or "+" in run.suite_commit:
        return
    documents = store.documents.several(run_id, (MergeBaseDocument, SourceDocument, RequestDocument))
    request, source = documents.get(RequestDocument), documents.get(SourceDocument)
    if documents.get(MergeBaseDocument) or source is None or request is None:
        return
    requested = request.root
    if requested.drop or requested.only or requested.evaluates:
        return
    if store.opened.has(run.chain, run.mode, run.suite_commit):
        return
    plan = store.plans.get_or_none(run_id)
    opened = opened_by(plan, store.steps.statuses(run_id), RunFiles(store, run_id, home)) if plan else None
    try:
        names = kept_names(home, source)
    except InfraError:
        return
    if opened:
        store.documents.put(run_id, OpenedDocument(commit=run.suite_commit, paths=tuple(sorted(opened & names))))


def opened_by(plan: Plan, statuses: dict[str, tuple[Status, str]], files: RunFiles) -> frozenset[str] | None:
    """The recorded paths of all steps; None if a record is missing or incomplete.

    Args:
        statuses: step -> (status, reason).
        files: the run's files, as collected from the nodes.
    """
    opened: set[str] = set()
    for step in plan.steps:
        status = statuses.get(step.id, (Status.BLOCKED, ""))[0]
        if step.kind is StepKind.PREPARE or status is Status.NOT_RUN:
            continue
        lines: list[str] = []
        for file in files.of_step(step.id, NAME):
            lines += file.read_bytes().decode("utf-8", "surrogateescape").split("\n")
        lines = [line for line in lines if line]
        if status not in _ACCEPTED or not lines or MORE in lines:
            return None
        opened.update(lines)
    return frozenset(opened)

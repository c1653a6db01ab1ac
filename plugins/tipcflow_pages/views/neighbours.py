"""Data of a run outside the metrics database: files, events, DAG run."""

from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.domain import EndReason, InfraError, LegKey, Status
from tipcflow.execute.collect.run_files import RunFiles
from tipcflow.execute.overview.nodes import MOST_ACTIVE, load_queue
from tipcflow.parse import error_excerpt
from tipcflow.report.overview.nodes import Waiting
from tipcflow.report.run.data import RunData
from tipcflow_pages.data.dag_run import dag_run_path
from tipcflow_pages.data.files import RunFile, readable, run_files, run_folder, step_folder, stored_copy, tail
from tipcflow_pages.data.live import Progress, progress
from tipcflow_pages.views.file_groups import file_groups
from tipcflow_pages.views.run_view import PageContext

if TYPE_CHECKING:
    from tipcflow.store import Store

_BAD = frozenset({Status.FAILED, Status.INFRA_FAILURE})
_ENDED_BY_US = (EndReason.STOPPED, EndReason.BARRIER_TIMEOUT)
_EXCERPTS = 4
# A larger log is not copied from the object store for a few lines of it.
_MOST_COPIED = 16 << 20


def collect_context(store: "Store", data: RunData, home: Path) -> PageContext:
    """Collect the run's data that is not in the database; missing data is omitted."""
    folder = run_folder(home, data.run.id)
    waiting = _waiting(store, data) if data.run.status is None else None
    kept = RunFiles(store, data.run.id, home)
    files = run_files(folder, kept)
    return PageContext(
        progress=progress(home, data.run.id) if data.run.status is None else Progress(),
        files=file_groups(data.plan, files),
        excerpts=tuple(_excerpts(data, folder, files, kept)),
        airflow=dag_run_path(data.run.id),
        waiting=waiting,
        in_slurm=store.queue.in_slurm().get(data.run.id) if data.run.status is None else None,
    )


def _waiting(store: "Store", data: RunData) -> Waiting | None:
    active, _ = store.states.active(MOST_ACTIVE)
    return next((each for each in load_queue(store, active, store.now()) if each.run == data.run.id), None)


def _excerpts(
    data: RunData, folder: Path | None, files: list[RunFile], kept: RunFiles
) -> list[tuple[str, str, str, str]]:
    """Return the last log lines of failed steps and legs: (step id, node or leg, file, lines).

    Without an object store that responds in time, only those of files on this machine.
    """
    logs = []
    for step in data.facts.plan.steps:
        bad = data.facts.step_status.get(step.id) in _BAD
        failed = _failed_nodes(data, step.id)
        own = [file for file in files if file.step == step_folder(step.id) and file.readable]
        for leg in step.legs:
            if data.facts.leg_status.get(LegKey(step.id, leg.id)) in _BAD:
                own_logs = [file for file in own if file.name == f"logs/{step_folder(leg.id)}.log"]
                logs += [(step.id, leg.id, file) for file in own_logs]
        if bad and not step.legs:
            logs += [(step.id, file.node, file) for file in own if _is_shown(file) and file.node in failed]
    texts = ((step, about, file.path, _excerpt(folder, file, kept)) for step, about, file in logs)
    excerpts: list[tuple[str, str, str, str]] = []
    with suppress(InfraError):
        excerpts.extend(islice((excerpt for excerpt in texts if excerpt[3]), _EXCERPTS))  # no further log is read
    return excerpts


def _failed_nodes(data: RunData, step: str) -> set[str]:
    """Return the nodes whose own job failed; all nodes if each was only stopped because of another."""
    last = data.last.get(step)
    records = [record for record in last.records if not record.leg] if last else []
    failed_nodes = {
        record.node
        for record in records
        if not record.ok and not record.is_collateral and record.reason not in _ENDED_BY_US
    }
    return failed_nodes or set(last.nodes if last else ())


def _is_shown(file: RunFile) -> bool:
    return file.name == "logs/main.log" or "workerlog." in file.name


def _excerpt(folder: Path | None, file: RunFile, kept: RunFiles) -> str:
    if file.stored:
        path = stored_copy(kept, file.path) if file.bytes <= _MOST_COPIED else None
    else:
        path = readable(folder, file.path) if folder else None
    return error_excerpt(tail(path)) if path else ""

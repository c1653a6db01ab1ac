"""Data of a run outside the metrics database: files, events, DAG run."""

from pathlib import Path

from certification.data.dag_run import dag_run_path
from certification.data.files import RunFile, readable, run_files, run_folder, step_folder, tail
from certification.data.live import Progress, progress
from certification.data.run_data import Story
from certification.views.rows import file_groups
from certification.views.run_view import Around
from tipcflow.domain import EndReason, Status
from tipcflow.parse import error_excerpt

_BAD = frozenset({Status.FAILED, Status.INFRA_FAILURE})
_ENDED_BY_US = (EndReason.STOPPED, EndReason.BARRIER_TIMEOUT)
_EXCERPTS = 4


def look_around(story: Story, home: Path) -> Around:
    """Collect the run's data that is not in the database; missing data is omitted."""
    folder = run_folder(home, story.run.id)
    files = run_files(folder) if folder else []
    return Around(
        progress=progress(home, story.run.id) if story.run.status is None else Progress(),
        files=file_groups(story.plan, files),
        excerpts=tuple(_excerpts(story, folder, files)) if folder else (),
        airflow=dag_run_path(story.run.id),
    )


def _excerpts(story: Story, folder: Path, files: list[RunFile]) -> list[tuple[str, str, str, str]]:
    """Return the last log lines of failed steps and legs: (step id, node or leg, file, lines)."""
    found = []
    for step in story.facts.plan.steps:
        bad = story.facts.step_status.get(step.id) in _BAD
        blamed = _blamed(story, step.id)
        own = [one for one in files if one.step == step_folder(step.id) and one.readable]
        for leg in step.legs:
            if story.facts.leg_status.get(f"{step.id}/{leg.id}") in _BAD:
                own_logs = [one for one in own if one.name == f"logs/{step_folder(leg.id)}.log"]
                found += [(step.id, leg.id, one) for one in own_logs]
        if bad and not step.legs:
            found += [(step.id, one.node, one) for one in own if _telling(one) and one.node in blamed]
    texts = [(step, about, one.path, _excerpt(folder, one)) for step, about, one in found]
    return [one for one in texts if one[3]][:_EXCERPTS]


def _blamed(story: Story, step: str) -> set[str]:
    """Return the nodes whose own job failed; all nodes if each was only stopped because of another."""
    last = story.last.get(step)
    records = [one for one in last.records if not one.leg] if last else []
    culprits = {one.node for one in records if not one.ok and not one.victim and one.reason not in _ENDED_BY_US}
    return culprits or set(last.nodes if last else ())


def _telling(file: RunFile) -> bool:
    return file.name == "logs/main.log" or "workerlog." in file.name


def _excerpt(folder: Path, file: RunFile) -> str:
    path = readable(folder, file.path)
    return error_excerpt(tail(path)) if path else ""

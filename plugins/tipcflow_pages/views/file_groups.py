"""A run's files by step and node."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from tipcflow.domain import Plan
from tipcflow.report.text.names import short_step
from tipcflow_pages.data.files import RunFile, step_folder


@dataclass(frozen=True)
class FileGroup:
    """The files of one step on one node."""

    step: str
    node: str
    files: tuple[RunFile, ...]


def file_groups(plan: Plan | None, files: Iterable[RunFile]) -> tuple[FileGroup, ...]:
    """Files by step and node, steps in the order of the plan and by their short names."""
    names = {step_folder(step.id): short_step(plan, step.id) for step in plan.steps} if plan else {}
    places = {folder: place for place, folder in enumerate(names)}
    ordered = sorted(files, key=lambda file: (places.get(file.step, len(places)), file.step, file.node))
    return tuple(
        FileGroup(names.get(step, step), node, tuple(group))
        for (step, node), group in groupby(ordered, key=lambda file: (file.step, file.node))
    )

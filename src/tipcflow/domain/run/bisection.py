"""The result of a bisection, stored with the run in which the regression or failure began."""

from typing import ClassVar

from tipcflow.domain.base import Record
from tipcflow.domain.run_documents import Fields


class Version(Record):
    """A commit or build; `title` is the first line of the commit's message."""

    id: str
    title: str = ""


class BisectionDocument(Fields):
    """The result of a bisection that started because of this run.

    Attributes:
        chain, mode: of the runs; '' in results of earlier versions.
        metric: the metric, or `failure`; `step` and `leg` '' if not given.
        good, bad: commits of the ends.
        is_certain: whether the probability is at least the required one.
        probability: of the most probable commit or group of commits; None without any.
        changes: this commit or group, oldest first.
        sentence: the result in one line.
        runs: IDs of all measurements.
        seconds: duration of these runs together.
        dag_run: ID of the run of the DAG `bisect`.
    """

    NAME: ClassVar[str] = "bisection"
    chain: str = ""
    mode: str = ""
    metric: str = ""
    step: str = ""
    leg: str = ""
    good: str = ""
    bad: str = ""
    is_certain: bool = False
    probability: float | None = None
    changes: tuple[Version, ...] = ()
    sentence: str
    runs: tuple[str, ...] = ()
    seconds: float = 0.0
    dag_run: str = ""

"""Texts of the check run and the comment of a pull request; no I/O.

Public: nothing.
"""

from tipcflow.github.report.check_run import (
    Action,
    Annotation,
    CheckRun,
    Conclusion,
    batches,
    check_run,
    conclusion,
)
from tipcflow.github.report.comment import comment, marker
from tipcflow.github.report.facts import ChainFacts, Finding, PullFacts, State

__all__ = [
    "Action",
    "Annotation",
    "ChainFacts",
    "CheckRun",
    "Conclusion",
    "Finding",
    "PullFacts",
    "State",
    "batches",
    "check_run",
    "comment",
    "conclusion",
    "marker",
]

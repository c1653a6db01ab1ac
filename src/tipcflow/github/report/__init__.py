"""Texts of the check run and the comment of a pull request, and of issues about alerts; no I/O.

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
from tipcflow.github.report.comparison import ComparedChain, ComparedMetric, ComparisonFacts, comparison_text
from tipcflow.github.report.facts import ChainFacts, Finding, PullFacts, State
from tipcflow.github.report.issue import (
    Issue,
    IssueFacts,
    IssueNote,
    issue_marker,
    issue_note,
    issue_text,
    issue_title,
)

__all__ = [
    "Action",
    "Annotation",
    "ChainFacts",
    "CheckRun",
    "ComparedChain",
    "ComparedMetric",
    "ComparisonFacts",
    "Conclusion",
    "Finding",
    "Issue",
    "IssueFacts",
    "IssueNote",
    "PullFacts",
    "State",
    "batches",
    "check_run",
    "comment",
    "comparison_text",
    "conclusion",
    "issue_marker",
    "issue_note",
    "issue_text",
    "issue_title",
    "marker",
]

"""Facts and verdicts as text, Markdown, JUnit XML and JSON; no I/O.

Public: `__all__`, `again`, `api`, `attestation`, `canonical`, `certificate`, `curves`, `junit`, `markdown`,
`meaning`, `result_groups`, `rows`, `tables`, `verify`.
"""

from tipcflow.report.certificate import as_text, certificate
from tipcflow.report.junit import ReportedRun, junit, junit_of_runs
from tipcflow.report.markdown import markdown
from tipcflow.report.rows import leg_rows, step_rows, verdict_rows
from tipcflow.report.sections import Basis
from tipcflow.report.verify import verify

__all__ = [
    "Basis",
    "ReportedRun",
    "as_text",
    "certificate",
    "junit",
    "junit_of_runs",
    "leg_rows",
    "markdown",
    "step_rows",
    "verdict_rows",
    "verify",
]

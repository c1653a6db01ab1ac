"""Documentation of the DAG `bisect` in Airflow's UI."""

DOC = """### bisect

Searches for the commit of a suite, or the build of a framework, that made a chain slower, less accurate, or fail: **check → search →
verdict**. The runs are runs of the DAG `certify` with the lowest priority: all others wait for slots before them. Started by users, or by the DAG `maintenance` for regressions
and failures, if the policy of their run has `bisect: {start: regressions}` or `all` (docs/reference/bisection.md).

**Results**: the log of the task `search` has a line per run and ends with the commit or build and its probability. The result is attached to
the alert. The DAG run fails if none reaches the required probability.

**Stop**: mark the run as failed; a run that has started continues to its verdict. **Resume**: clear the run, or start another one with the
same params. Stored runs of these versions count, so nothing is measured twice.
"""

TASKS = {
    "check": """Validates the params, resolves both refs to commits, or checks the list of builds, and reads the params file. An
invalid param, an unknown ref, or a good ref that is not before the bad one ends with `config_error` before anything starts. **Failed?** The log
names the param.""",
    "search": """Starts runs and defers until they end, until a version has the required probability or a limit is reached.
**Failed?** The ends do not differ, or two runs in a row had an `infra_failure`; the log names the run.""",
    "verdict": """Fails if no version has the required probability. The last line of the log is the result.""",
}

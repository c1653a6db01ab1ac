"""Documentation of the DAG `ab` in Airflow's UI."""

DOC = """### ab

Compares version A of a suite or framework with version B by running them in pairs until every metric is decided: **check → compare →
verdict**. The runs are runs of the DAG `certify` on the same nodes, in the order A B, B A, A B …

**Results**: the log of the task `compare` has a line per pair and ends with a table of the metrics: B / A, its interval, and whether
B is better, worse, the same or undecided. The DAG run fails if B is worse or fails, and if the result is undecided.

**Stop**: mark the run as failed; a run that has started continues to its verdict. **Resume**: clear the run. Pairs that have ended are
kept, the task waits for an active run and then starts the next one.
"""

TASKS = {
    "check": """Validates the params, resolves both refs to commits and reads the params file at both. An invalid param, an
unknown ref, or no difference between A and B ends with `config_error` before anything starts. **Failed?** The log names the param.""",
    "compare": """Starts the runs one after the other and defers until each ends, until every metric is decided or a limit is
reached. **Failed?** Two pairs in a row had an `infra_failure`, or no metric can be compared; the log names the run.""",
    "verdict": """Fails if B is worse or fails, and if the result is undecided. The last line of the log is the result.""",
}

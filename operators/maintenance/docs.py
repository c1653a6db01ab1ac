"""Documentation of the DAG `maintenance` in Airflow's UI."""

DOC = """### maintenance

Hourly cleanup sweeps, in parallel. They are safe at any time and never touch an active run. The last line of each
task's log is a summary. Unreachable nodes are logged and retried in the next hour; they do not fail the task.
"""

TASKS = {
    "runs_without_status": """Finishes abandoned runs: the DAG run has ended or, for a run started by the CLI, the
    run holds no slots and started more than a day ago. Collects, releases and judges the run like any other.""",
    "expired_leases": """Releases slots with an expired lease after checking that no process of the run is left on
    the node. Stops remaining processes of finished runs.""",
    "leftovers": """Stops remaining processes of finished runs without a lease on all nodes of all clusters; runs
    of other databases are not touched. Removes slot requests of dead waiters. CLI equivalent: `tipcflow nodes
    reap`.""",
    "node_folders": """Removes the folders of finished runs on all nodes of all clusters: one day after a pass,
    two weeks after any other status. Keeps folders of runs that are not in the database. Skips clusters without
    usable connections.""",
    "retention": """Removes suite snapshots unused for 30 days and live progress older than 90 days from
`TIPCFLOW_HOME`. Measurements, logs and certificates are kept.""",
}

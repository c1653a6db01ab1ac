"""Documentation of the DAG `maintenance` in Airflow's UI."""

DOC = """### maintenance

Hourly cleanup. The tasks run in parallel, never touch a run in progress, and may run next to any other DAG. The last line of
each task's log summarizes its actions. Unreachable nodes are reported and retried in the next hour; they do not fail the task.
"""

TASKS = {
    "runs_without_status": """Sets the status of abandoned runs: the DAG run has ended or, for a run of the CLI, there is no
lease and it started more than a day ago. Such a run is collected, released and judged like any other.""",
    "expired_leases": """Drops expired leases after the node was listed and runs nothing of the run. Leftovers of a run that
has a status are ended.""",
    "leftovers": """Inspects all nodes of all clusters and ends leftovers of runs that have a status and no lease; runs of other
databases are left alone. Deletes requests for slots without a waiter. CLI equivalent: `tipcflow nodes reap`.""",
    "late_logs": """Fetches the logs of nodes that were lost during a run and respond after its end, for two weeks, and stores
their metrics. The run keeps its status. CLI equivalent: `tipcflow nodes reap`.""",
    "node_folders": """Removes folders of ended runs from all nodes of all clusters: one day after a pass, two weeks after any
other status. Runs that the database does not know are kept. Clusters without usable connections are skipped.""",
    "retention": """Removes suite snapshots unused for 30 days and progress events of runs older than 90 days from
`TIPCFLOW_HOME`. Measurements, logs and certificates are kept. Webhook deliveries that were handled more than 30 days ago
lose their event data, and their rows after 400 days; so are attempts of commits and sent messages.""",
    "missed_deliveries": """Fetches from GitHub the webhook deliveries of the last three days that this Airflow did not accept, as
while it was down, and stores them like the webhook does. Without a file in configs/repositories nothing is fetched.""",
    "notices": """Notifies teams of chains that stopped passing or pass again, outside of quiet hours, each change once, and sends
weekly digests. Without a file in configs/teams nothing is sent. See docs/tutorial/notifications.md.""",
}

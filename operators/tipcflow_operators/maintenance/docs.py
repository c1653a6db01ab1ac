"""Documentation of the DAG `maintenance` in Airflow's UI."""

DOC = """### maintenance

Cleans up every hour. The tasks run in parallel, never touch a run in progress, and may run next to any other DAG. The last line of
each task's log summarizes its actions. Unreachable nodes are reported and retried in the next hour; they do not fail the task.
"""

TASKS = {
    "runs_without_status": """Sets the status of abandoned runs: the DAG run has ended or, for a run of the CLI, the run
holds no lease and started more than a day ago. Such a run is collected, released and evaluated like any other.""",
    "expired_leases": """Deletes an expired lease once its node has no process of that run. Ends leftovers of runs that have a
status.""",
    "leftovers": """Inspects all nodes of all clusters and ends leftovers of runs that have a status and no lease; runs of other
databases are left alone. Deletes slot requests that no task waits for. CLI equivalent: `tipcflow nodes reap`.""",
    "late_logs": """Retries nodes that were lost during a run for two weeks, fetches their logs and stores the metrics. The run keeps its status. Writes certificates again that are not completely in the object store. CLI equivalent: `tipcflow nodes reap`.""",
    "node_folders": """Removes folders of ended runs from all nodes of all clusters: one day after a pass, two weeks after any
other status. Runs that the database does not know are kept. Clusters without usable connections are skipped.""",
    "retention": """Removes suite snapshots unused for 30 days and progress events of runs older than 90 days from
`TIPCFLOW_HOME`. Measurements, logs and certificates are kept. Event data of webhook deliveries is deleted
30 days after handling; deliveries, attempts of commits and sent messages after 400 days.""",
    "missed_deliveries": """Fetches from GitHub the webhook deliveries of the last three days that this Airflow did not accept,
for example during downtime, and stores them like the webhook does. Without a file in configs/repositories nothing is fetched.""",
    "notices": """Notifies teams of alerts, and of chains that stopped passing or pass again, outside of quiet hours, each change
once, and sends weekly digests. Without a file in configs/teams nothing is sent. See docs/tutorial/notifications.md.""",
    "bisections": """Starts runs of the DAG `bisect` for open alerts and failed chains, if the policy of their first bad run has
`bisect: {start: regressions}` or `all`, at most `at_once` at the same time. Each one is bisected once. The log names those
that cannot be bisected, with the reason. See docs/reference/bisection.md.""",
    "node_histories": """Compares the speed of each node with its own last 90 days, by its probes and by the chains on it, and stores the result
for the page *Nodes*. CLI equivalent: `tipcflow nodes --history`.""",
    "slow_nodes": """Drains a node that its own probes show to be slower than before, on clusters with `drain: auto`: it gets no runs until
`tipcflow nodes undrain`. At most one node per hour and cluster, a quarter of the nodes, and never nodes that the cluster's runs need. The
log names the evidence.""",
}

"""What a person reads in Airflow's UI about the DAG `maintenance`."""

DOC = """### maintenance

Sweeps, every hour, side by side. They may run beside anything and never touch a run that goes on. The last line of
each task's log says what was done. What cannot be reached now is left to the next hour; that is said, and not red.
"""

TASKS = {
    "runs_without_status": """Gives a status to every run that has none and that nobody goes on with: its DAG run
has ended or, for a run from a desk, it holds no slots and began more than a day ago. It is collected, released and
judged as any other.""",
    "expired_leases": """Gives slots back whose lease has run out, once their node was listed and holds nothing of
the run. What is left there of a run that has a status is ended.""",
    "leftovers": """Looks at all nodes of all clusters: what is there of runs that have a status and hold no lease
is ended; runs of other databases are left alone. Forgets requests for slots whose waiters are gone. At a desk
`tipcflow nodes reap` does it.""",
    "node_folders": """Removes the folders of ended runs on all nodes of all clusters: a day after a pass, two
weeks after anything else. Runs that the database does not know are left. Clusters without usable connections are
passed over.""",
    "retention": """Removes suite snapshots that were not used for 30 days, and the live progress of runs of 90
days ago, below `TIPCFLOW_HOME`. Measurements, logs and certificates stay.""",
}

"""Documentation of the DAG `pull_request` in Airflow's UI."""

DOC = """### pull_request

Certifies pull requests, pushes and merge groups of the repositories in configs/repositories (docs/reference/github.md). Without such
a file the DAG has no schedule.

One run is always active. Its task waits in the triggerer, without a worker, until the webhook has stored a delivery, the state of a
certified chain has changed, or a report is due. The task then handles the deliveries, starts or stops DAG runs of chains, and sends check
runs, comments, and issues about alerts to GitHub; the next run of this DAG waits again. All state is in the metrics database, so a lost task is repeated
without a second run or a second comment.
"""

TASKS = {
    "listen": """Waits for deliveries and due reports, then handles them: reads deliveries of the webhook, starts and stops the DAG runs of chains, and
sends reports. Its log has one line per delivery, start, stop and report.""",
}

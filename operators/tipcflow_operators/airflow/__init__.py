"""What tipcflow needs of Airflow itself: connections, API, DAG runs, executor, errors and events of tasks.

Public: `api`, `async_connect`, `certified`, `child_runs`, `connect`, `dag_runs`, `database`, `errors`, `events`,
`executor`, `internals`.
"""

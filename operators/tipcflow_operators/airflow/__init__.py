"""What tipcflow needs of Airflow itself: connections, API, DAG runs, executor, errors, events and traces of tasks.

Public: `api`, `async_connect`, `certified`, `child_runs`, `connect`, `dag_runs`, `database`,
`errors`, `events`, `executor`, `internals`, `log_fields`, `tracing`.
"""

"""What tipcflow needs of Airflow itself: connections, API, DAG runs, executor, errors, events and traces of tasks.

Public: `api`, `async_connect`, `celery_imports`, `certified`, `child_runs`, `connect`, `dag_runs`, `database`,
`errors`, `events`, `executor`, `internals`, `log_fields`, `preload`, `tracing`.
"""

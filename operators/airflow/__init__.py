"""What tipcflow needs of Airflow itself: connections, API, DAG runs, executor, errors and events of tasks."""

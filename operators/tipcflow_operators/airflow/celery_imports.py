"""Module that a Celery worker imports at its start, before it forks the processes from which tasks are forked.

`AIRFLOW__CELERY__EXTRA_CELERY_CONFIG` in configs/airflow.env names it as one of Celery's `imports`. Importing it
imports the modules that tasks need.
"""

from tipcflow_operators.airflow.preload import warm

warm()

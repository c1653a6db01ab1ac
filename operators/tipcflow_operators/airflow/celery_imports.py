"""Module that a Celery worker imports at its start, before it forks the processes from which tasks are forked.

`AIRFLOW__CELERY__EXTRA_CELERY_CONFIG` in configs/airflow.env names it as one of Celery's `imports`. Importing it
imports the modules that tasks need.
"""

import gc

from tipcflow_operators.airflow.preload import warm

warm()
# Collections would copy the memory that the forked processes share. Airflow unfreezes it once they exist.
gc.freeze()

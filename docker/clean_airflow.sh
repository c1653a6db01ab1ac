#!/bin/sh
# Removes old rows of Airflow's database and old task logs; see docs/operations.md, "Retention". Runs in the environment of a
# component of Airflow that has the database's address:
#   docker-compose exec -T scheduler /opt/tipcflow/docker/clean_airflow.sh
# The table `log` is Airflow's audit log, with who started, stopped and cleared runs: 400 days instead of 90.
set -eu
tables=$(python -c 'from airflow.utils.db_cleanup import config_dict; print(*sorted({*config_dict} - {"log"}), sep=",")' | tail -n 1)
airflow db clean --clean-before-timestamp "$(date -u -d '-90 days' +%F)" --tables "$tables" --skip-archive --yes
airflow db clean --clean-before-timestamp "$(date -u -d '-400 days' +%F)" --tables log --skip-archive --yes
[ -d "$AIRFLOW_HOME/logs" ] || exit 0
find "$AIRFLOW_HOME/logs" -type f -mtime +90 -delete
find "$AIRFLOW_HOME/logs" -mindepth 1 -type d -empty -mtime +1 -delete

#!/bin/sh
# Removes old rows of Airflow's database, old results of Celery and old task logs; see docs/operations.md, "Retention". Runs in the environment of a
# component of Airflow that has the addresses of both databases:
#   docker-compose exec -T scheduler /opt/tipcflow/docker/clean_airflow.sh
# The table `log` is Airflow's audit log, with who started, stopped and cleared runs: 400 days instead of 90.
set -eu
tables=$(python -c 'from airflow.utils.db_cleanup import config_dict; print(*sorted({*config_dict} - {"log"}), sep=",")' | tail -n 1)
airflow db clean --clean-before-timestamp "$(date -u -d '-90 days' +%F)" --tables "$tables" --skip-archive --yes
airflow db clean --clean-before-timestamp "$(date -u -d '-400 days' +%F)" --tables log --skip-archive --yes
# Celery's results may have a database of their own, which `airflow db clean` does not know. Celery stores times in UTC.
python - <<'PYTHON'
from datetime import UTC, datetime, timedelta

from airflow.configuration import conf
from sqlalchemy import create_engine, inspect, text

url = conf.get("celery", "result_backend", fallback="") or ""
if url.startswith("db+"):
    before = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=90)
    with create_engine(url.removeprefix("db+")).begin() as results:
        # The first task makes the table.
        if inspect(results).has_table("celery_taskmeta"):
            results.execute(text("DELETE FROM celery_taskmeta WHERE date_done < :before"), {"before": before})
PYTHON
[ -d "$AIRFLOW_HOME/logs" ] || exit 0
find "$AIRFLOW_HOME/logs" -type f -mtime +90 -delete
find "$AIRFLOW_HOME/logs" -mindepth 1 -type d -empty -mtime +1 -delete

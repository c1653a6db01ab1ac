"""Health check of the Airflow component of this container: its own, not that of another instance.

The scheduler and the api-server report their health by HTTP, a worker answers a ping of Celery, and the triggerer
and the dag-processor have a heartbeat in Airflow's database. `airflow jobs check` and `celery inspect ping` with
Airflow's application do the same, but take seconds of CPU.
Usage: health.py COMPONENT (scheduler, api_server, triggerer, dag_processor or worker).
"""

import configparser
import os
import socket
import sys
import urllib.request
from pathlib import Path

# Components that respond with 200 if they are healthy.
OWN = {"api_server": "http://127.0.0.1:8080/api/v2/monitor/health", "scheduler": "http://127.0.0.1:8974/health"}
# Component -> type of its row in Airflow's table `job`.
JOBS = {"triggerer": "TriggererJob", "dag_processor": "DagProcessorJob"}
TIMEOUT_S = 5
# Heartbeats are 5 s apart; on a busy machine some are late.
HEARTBEAT_S = 60
# DAG files that take longer than this are reported by their import error, and files without DAGs appear nowhere.
PARSING_S = 180
JOB_QUERY = """
SELECT start_date, extract(epoch FROM now() - start_date) FROM job
WHERE job_type = %s AND hostname = %s AND state = 'running'
AND latest_heartbeat > now() - make_interval(secs => %s)
ORDER BY start_date DESC LIMIT 1
"""
PARSED_QUERY = """
SELECT relative_fileloc FROM dag WHERE last_parsed_time >= %(since)s
UNION SELECT filename FROM import_error WHERE timestamp >= %(since)s
"""


def healthy(component: str) -> bool:
    """Whether the component is healthy; the dag-processor is once it has read all DAG files.

    Raises:
        OSError: the component does not respond, or responds with an error.
        psycopg.Error: the database does not respond.
        KeyError: unknown component.
    """
    if component == "worker":
        return _worker_responds()
    if component in JOBS:
        return job_is_healthy(component, os.environ["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"])
    return responds(OWN[component])


def responds(url: str) -> bool:
    """Whether the address responds with 200.

    Raises:
        OSError: nothing responds, or the response is an error.
    """
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:  # noqa: S310
        return bool(response.status == 200)


def job_is_healthy(component: str, database: str) -> bool:
    """Whether this container's job has a recent heartbeat.

    Raises:
        psycopg.Error: the database does not respond.
    """
    import psycopg

    url = database.replace("+psycopg2", "")
    with psycopg.connect(url, connect_timeout=TIMEOUT_S, autocommit=True) as connection:
        job = connection.execute(JOB_QUERY, (JOBS[component], socket.gethostname(), HEARTBEAT_S)).fetchone()
        if job is None:
            return False
        since, age_s = job
        if component != "dag_processor" or age_s > PARSING_S:
            return True
        parsed = {str(name) for (name,) in connection.execute(PARSED_QUERY, {"since": since})}
    return all(any(name.endswith(file) for name in parsed) for file in dag_files())


def dag_files() -> list[str]:
    """Files with DAGs, relative to their folder."""
    folder = Path(os.environ["AIRFLOW__CORE__DAGS_FOLDER"])
    return [path.relative_to(folder).as_posix() for path in folder.rglob("*.py")]


def _worker_responds() -> bool:
    """Whether the worker of this container answers a ping through the queue."""
    from celery import Celery

    config = configparser.ConfigParser()  # interpolates `%`, as Airflow does
    config.read(os.environ.get("AIRFLOW_CONFIG") or Path(os.environ["AIRFLOW_HOME"], "airflow.cfg"))
    app = Celery(broker=config["celery"]["broker_url"])
    if os.environ.get("AIRFLOW__CELERY__SSL_ACTIVE") == "True":
        app.conf.broker_use_ssl = {
            "ssl_cert_reqs": "required",
            "ssl_ca_certs": os.environ["AIRFLOW__CELERY__SSL_CACERT"],
            "ssl_certfile": os.environ["AIRFLOW__CELERY__SSL_CERT"],
            "ssl_keyfile": os.environ["AIRFLOW__CELERY__SSL_KEY"],
        }
    inspect = app.control.inspect(destination=[f"celery@{socket.gethostname()}"], timeout=TIMEOUT_S)
    return bool(inspect.ping())


if __name__ == "__main__":
    sys.exit(0 if healthy(*sys.argv[1:]) else 1)

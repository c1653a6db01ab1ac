"""Health check of an Airflow component.

The scheduler and the api-server of this container report their own health; for the others, the api-server reports
the newest heartbeat. `airflow jobs check` does the same but takes seconds of CPU. Usage: health.py COMPONENT
(scheduler, api_server, triggerer, dag_processor or metadatabase).
"""

import json
import sys
import urllib.request

URL = "http://api-server:8080/api/v2/monitor/health"
# Components of this container that respond with 200 if they are healthy.
OWN = {"api_server": "http://127.0.0.1:8080/api/v2/monitor/health", "scheduler": "http://127.0.0.1:8974/health"}
TIMEOUT_S = 5


def healthy(component: str, url: str = "") -> bool:
    """Whether the component is healthy: by its own response, or by its last heartbeat.

    Args:
        url: replaces the queried address.

    Raises:
        OSError: nothing responds, or the component's own response is an error.
        KeyError: unknown component.
    """
    with urllib.request.urlopen(url or OWN.get(component, URL), timeout=TIMEOUT_S) as response:  # noqa: S310
        return component in OWN or json.load(response)[component]["status"] == "healthy"


if __name__ == "__main__":
    sys.exit(0 if healthy(*sys.argv[1:]) else 1)

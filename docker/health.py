"""Health check of an Airflow component, from the heartbeat that the api-server reports.

`airflow jobs check` does the same but costs seconds of CPU per call. Usage: health.py COMPONENT (scheduler,
triggerer, dag_processor, metadatabase, or api_server for the api-server itself).
"""

import json
import sys
import urllib.request

URL = "http://api-server:8080/api/v2/monitor/health"
TIMEOUT_S = 5


def healthy(component: str, url: str = URL) -> bool:
    """Whether the component's last heartbeat is recent enough for Airflow.

    Raises:
        OSError: the api-server does not respond.
        KeyError: unknown component.
    """
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as response:  # noqa: S310
        health = json.load(response)
    return component == "api_server" or health[component]["status"] == "healthy"


if __name__ == "__main__":
    sys.exit(0 if healthy(*sys.argv[1:]) else 1)

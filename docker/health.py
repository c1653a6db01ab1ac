"""Whether a component of Airflow is alive, from the heartbeat that the api-server tells of; for `healthcheck`.

`airflow jobs check` knows the same and costs seconds of CPU each time. Usage: health.py COMPONENT
(scheduler, triggerer, dag_processor, metadatabase, or api_server for the api-server itself).
"""

import json
import sys
import urllib.request

URL = "http://api-server:8080/api/v2/monitor/health"
TIMEOUT_S = 5


def healthy(component: str, url: str = URL) -> bool:
    """Whether the component's last heartbeat is recent enough for Airflow.

    Raises:
        OSError: the api-server does not answer.
        KeyError: there is no such component.
    """
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:  # noqa: S310
        told = json.load(answer)
    return component == "api_server" or told[component]["status"] == "healthy"


if __name__ == "__main__":
    sys.exit(0 if healthy(*sys.argv[1:]) else 1)

"""Health of a local Airflow and its components."""

import json
import socket
import urllib.request
from datetime import datetime
from typing import Any

from devcluster.airflow.environment import LOOPBACK
from tipcflow.domain import InfraError

# Names on the health page of the components that do not serve it.
_PARTS = {"scheduler": "scheduler", "dag_processor": "dag-processor", "triggerer": "triggerer"}


def unhealthy(url: str, components: tuple[str, ...], since: float, *, timeout_s: float = 30.0) -> list[str]:
    """Return the components that Airflow does not report as running; all of them if it does not respond.

    Args:
        since: Unix time of the start; an earlier heartbeat belongs to another process.
    """
    try:
        status = _get(f"{url}/api/v2/monitor/health", timeout_s)
        # The first request to the task execution API takes seconds to initialize it: without this request,
        # the first task would exceed its time limit.
        _get(f"{url}/execution/health", timeout_s)
    except (OSError, ValueError):
        return list(components)
    waited_for = {part: name for part, name in _PARTS.items() if name in components}
    return [name for part, name in waited_for.items() if not _alive(status.get(part) or {}, part, since)]


def _get(url: str, timeout_s: float) -> dict[str, Any]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=timeout_s) as response:
        content = json.load(response)
    return content if isinstance(content, dict) else {}


def _alive(component: dict[str, Any], part: str, since: float) -> bool:
    try:
        beat = datetime.fromisoformat(component[f"latest_{part}_heartbeat"]).timestamp()
    except (KeyError, TypeError, ValueError):
        return False
    return bool(component.get("status") == "healthy" and beat >= since)


def free_port(preferred: int = 0) -> int:
    """Return a free port of the loopback address; `preferred` if it is free.

    Raises:
        InfraError: no port is free.
    """
    for port in dict.fromkeys((preferred, 0)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            bound_port: int = probe.getsockname()[1]
            return bound_port
    raise InfraError(f"no free port at {LOOPBACK}")

"""Whether a local Airflow answers, and which of its parts are alive."""

import json
import socket
import urllib.request
from datetime import datetime
from typing import Any

from devcluster.airflow.environment import LOOPBACK
from tipcflow.domain import InfraError

# What the health page calls the components that do not serve it.
_PARTS = {"scheduler": "scheduler", "dag_processor": "dag-processor", "triggerer": "triggerer"}


def unhealthy(url: str, components: tuple[str, ...], since: float, *, timeout_s: float = 30.0) -> list[str]:
    """Which components do not run yet, as Airflow itself sees it; all of them while it does not answer.

    Args:
        since: Unix time of the start; a sign of life from before is another process's.
    """
    try:
        told = _get(f"{url}/api/v2/monitor/health", timeout_s)
        # The tasks' own API builds itself at its first request, for seconds: without this the first task would
        # run into its time limit.
        _get(f"{url}/execution/health", timeout_s)
    except (OSError, ValueError):
        return list(components)
    waited_for = {part: name for part, name in _PARTS.items() if name in components}
    return [name for part, name in waited_for.items() if not _alive(told.get(part) or {}, part, since)]


def _get(url: str, timeout_s: float) -> dict[str, Any]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=timeout_s) as answer:
        told = json.load(answer)
    return told if isinstance(told, dict) else {}


def _alive(told: dict[str, Any], part: str, since: float) -> bool:
    try:
        beat = datetime.fromisoformat(told[f"latest_{part}_heartbeat"]).timestamp()
    except (KeyError, TypeError, ValueError):
        return False
    return bool(told.get("status") == "healthy" and beat >= since)


def free_port(preferred: int = 0) -> int:
    """A port on the loopback address that nobody listens at; `preferred` when that is free.

    Raises:
        InfraError: there is none.
    """
    for port in dict.fromkeys((preferred, 0)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            found: int = probe.getsockname()[1]
            return found
    raise InfraError(f"no free port at {LOOPBACK}")

"""The webhook's app on a free port, without Airflow's api-server."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn


@contextmanager
def serving_webhook(connection: str = "app") -> Iterator[str]:
    """The address of the webhook, which has the settings and connections of this process."""
    from tipcflow_pages.secrets import connection_password
    from tipcflow_pages.webhook import configured, create_webhook

    configured.cache_clear()
    # The first read of a connection imports much of Airflow: on a busy machine for longer than a sender waits.
    connection_password(connection)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(create_webhook(), port=port, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        until = time.monotonic() + 60
        while not server.started and time.monotonic() < until:
            time.sleep(0.05)
        assert server.started
        yield f"http://127.0.0.1:{port}/github"
    finally:
        server.should_exit = True
        thread.join(30)

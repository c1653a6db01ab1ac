"""An Airflow with scripted responses: for those that a real one gives only in rare failures."""

from collections.abc import Callable

import httpx
import pytest

from tipcflow.airflow_api import Airflow

Answer = httpx.Response | Exception
URL = "http://airflow.test"


class Script:
    """Responses per path, in order; the last one stays. Records the requests."""

    def __init__(self, results: dict[str, list[Answer]]) -> None:
        self.results: dict[str, list[Answer]] = {
            "/auth/token": [httpx.Response(201, json={"access_token": "t1"})],
            **results,
        }
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        left = self.results[request.url.path]
        result = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(result, Exception):
            raise result
        return result

    def paths(self) -> list[str]:
        return [f"{request.method} {request.url.path}" for request in self.requests]


Scripted = Callable[..., tuple[Airflow, Script]]


@pytest.fixture
def scripted() -> Scripted:
    """Make an Airflow client whose server follows a script: (client, script)."""

    def make(
        results: dict[str, list[Answer]], *, token: str = "", deadline_s: float = 20.0
    ) -> tuple[Airflow, Script]:
        script = Script(results)
        login = {"token": token} if token else {"user": "ci", "password": "s3cret-word"}
        transport = httpx.MockTransport(script)
        return Airflow(URL, **login, deadline_s=deadline_s, transport=transport), script

    return make

"""An Airflow with scripted responses: for those that a real one gives only in rare failures."""

from collections.abc import Callable

import httpx
import pytest

from tipcflow.airflow_api import Airflow

Answer = httpx.Response | Exception
URL = "http://airflow.test"


class Script:
    """Responses per path, in order; the last one stays. Records the requests."""

    def __init__(self, answers: dict[str, list[Answer]]) -> None:
        self.answers = {"/auth/token": [httpx.Response(201, json={"access_token": "t1"})], **answers}
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        left = self.answers[request.url.path]
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def paths(self) -> list[str]:
        return [f"{request.method} {request.url.path}" for request in self.asked]


Scripted = Callable[..., tuple[Airflow, Script]]


@pytest.fixture
def scripted() -> Scripted:
    """Make an Airflow client whose server follows a script: (client, script)."""

    def make(
        answers: dict[str, list[Answer]], *, token: str = "", deadline_s: float = 20.0
    ) -> tuple[Airflow, Script]:
        script = Script(answers)
        login = {"token": token} if token else {"user": "ci", "password": "s3cret-word"}
        transport = httpx.MockTransport(script)
        return Airflow(URL, **login, deadline_s=deadline_s, transport=transport), script

    return make

"""Failed calls: no server, an expired login, an address that redirects elsewhere."""

import httpx
import pytest

from tipcflow.airflow_api import Airflow
from tipcflow.domain import ConfigError, InfraError

pytestmark = pytest.mark.slow

DAG = {"dag_id": "s.m.f", "is_paused": False}
PATH = "/api/v2/dags/s.m.f"


def good() -> httpx.Response:
    return httpx.Response(200, json=DAG)


def test_a_call_continues_without_a_response(scripted) -> None:
    refused = httpx.ConnectError("Connection refused")
    airflow, script = scripted({PATH: [refused, httpx.Response(503), refused, good()]})
    assert airflow.dag("s.m.f").dag_id == "s.m.f"
    assert script.paths() == ["POST /auth/token", *[f"GET {PATH}"] * 4]


def test_deadline_ends_the_wait_and_reports_the_last_reason(scripted) -> None:
    airflow, script = scripted({PATH: [httpx.ConnectError("Connection refused")]}, deadline_s=0.3)
    with pytest.raises(InfraError, match=r"http://airflow\.test is unavailable: Connection refused"):
        airflow.dag("s.m.f")
    assert len(script.requests) > 1


def test_an_error_inside_airflow_that_passes_is_not_an_error(scripted) -> None:
    locked = httpx.Response(500, json={"detail": "database is locked"})
    airflow, _ = scripted({PATH: [locked, good()]})
    assert airflow.dag("s.m.f").dag_id == "s.m.f"


def test_an_error_inside_airflow_that_lasts_ends_before_the_deadline(scripted) -> None:
    airflow, script = scripted({PATH: [httpx.Response(500, json={"detail": "broken"})]}, deadline_s=600.0)
    with pytest.raises(InfraError, match="HTTP 500: broken"):
        airflow.dag("s.m.f")
    assert script.paths().count(f"GET {PATH}") == 3


@pytest.mark.parametrize(
    "refusal",
    [
        httpx.Response(401, json={"detail": "Token Expired"}),
        httpx.Response(403, json={"detail": "Invalid JWT token"}),
    ],
    ids=["expired", "of another secret"],
)
def test_a_token_that_is_refused_is_renewed_once(scripted, refusal: httpx.Response) -> None:
    tokens = [httpx.Response(201, json={"access_token": word}) for word in ("t1", "t2")]
    airflow, script = scripted({"/auth/token": tokens, PATH: [good(), refusal, good()]})
    airflow.dag("s.m.f")
    airflow.dag("s.m.f")
    used = [request.headers.get("authorization") for request in script.requests]
    assert used == [None, "Bearer t1", "Bearer t1", None, "Bearer t2"]


def test_a_fresh_token_that_is_refused_is_an_error(scripted) -> None:
    airflow, script = scripted({PATH: [httpx.Response(401, json={"detail": "no"})]})
    with pytest.raises(ConfigError, match="refuses the login"):
        airflow.dag("s.m.f")
    assert len(script.requests) == 2


def test_a_given_token_is_not_renewed_and_not_repeated(scripted) -> None:
    airflow, script = scripted({PATH: [httpx.Response(401, json={"detail": "no"})]}, token="s3cret-token")
    with pytest.raises(ConfigError, match="refuses the token") as caught:
        airflow.dag("s.m.f")
    assert script.paths() == [f"GET {PATH}"]
    assert "s3cret-token" not in str(caught.value)


def test_a_refused_login_names_the_user_alone(scripted) -> None:
    airflow, _ = scripted({"/auth/token": [httpx.Response(401, json={"detail": "Invalid credentials"})]})
    with pytest.raises(ConfigError, match="refuses the login of 'ci'") as caught:
        airflow.dags()
    assert "s3cret-word" not in str(caught.value)


def test_a_redirect_is_not_followed_with_the_token(scripted) -> None:
    moved = httpx.Response(307, headers={"location": "https://elsewhere.test/x"})
    airflow, script = scripted({PATH: [moved]})
    with pytest.raises(ConfigError, match=r"redirects .* to https://elsewhere\.test/x"):
        airflow.dag("s.m.f")
    assert {request.url.host for request in script.requests} == {"airflow.test"}


def test_a_server_other_than_airflow_is_reported(scripted) -> None:
    page = httpx.Response(200, text="<html>", headers={"content-type": "text/html"})
    airflow, _ = scripted({PATH: [page]})
    with pytest.raises(ConfigError, match=r"does not respond like Airflow 3.*text/html"):
        airflow.dag("s.m.f")


@pytest.mark.parametrize(
    "url", ["", "airflow.test", "ftp://airflow.test", "http://", "http://a:99999", "http://a?b=c"]
)
def test_invalid_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="not an Airflow URL"):
        Airflow(url, token="t")


def test_a_login_in_the_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError, match="Airflow URL must not contain credentials") as caught:
        Airflow("https://ci:s3cret-word@airflow.test", token="t")
    assert "s3cret-word" not in str(caught.value)


@pytest.mark.parametrize("login", [{}, {"user": "ci"}, {"password": "x"}, {"user": "", "password": ""}])
def test_half_a_login_is_none(login: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="no login"):
        Airflow("http://airflow.test", **login)

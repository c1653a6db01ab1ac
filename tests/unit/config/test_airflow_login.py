import pytest

from tipcflow.config.airflow_login import airflow_login, airflow_url
from tipcflow.domain import ConfigError

URL = {"TIPCFLOW_AIRFLOW_URL": " https://airflow.example.org "}
LOGIN = {"TIPCFLOW_AIRFLOW_USER": "ci", "TIPCFLOW_AIRFLOW_PASSWORD": "s3cret-word"}
TOKEN = {"TIPCFLOW_AIRFLOW_TOKEN": "s3cret-token\n"}


def test_an_empty_address_counts_as_unset() -> None:
    addresses = [airflow_url(environ) for environ in (URL, {"TIPCFLOW_AIRFLOW_URL": " "}, {})]
    assert addresses == ["https://airflow.example.org", "", ""]


def test_user_and_password_are_read() -> None:
    found = airflow_login(URL | LOGIN)
    assert (found.url, found.user, found.password, found.token) == (
        "https://airflow.example.org",
        "ci",
        "s3cret-word",
        None,
    )


def test_a_token_wins_and_the_line_end_of_its_file_is_stripped() -> None:
    found = airflow_login(URL | LOGIN | TOKEN)
    assert (found.token, found.user, found.password) == ("s3cret-token", None, None)


@pytest.mark.parametrize("environ", [URL | LOGIN, URL | TOKEN])
def test_no_secret_is_ever_shown(environ: dict[str, str]) -> None:
    found = airflow_login(environ)
    assert "s3cret" not in f"{found} {found!r} {[found]}"


@pytest.mark.parametrize(
    ("environ", "key"),
    [
        (LOGIN, "TIPCFLOW_AIRFLOW_URL"),
        (URL | LOGIN | {"TIPCFLOW_AIRFLOW_URL": ""}, "TIPCFLOW_AIRFLOW_URL"),
        ({}, "TIPCFLOW_AIRFLOW_URL and TIPCFLOW_AIRFLOW_USER"),
        ({"TIPCFLOW_AIRFLOW_USER": "x"}, "TIPCFLOW_AIRFLOW_URL and TIPCFLOW_AIRFLOW_PASSWORD"),
        (URL, "TIPCFLOW_AIRFLOW_USER"),
        (URL | {"TIPCFLOW_AIRFLOW_PASSWORD": "x"}, "TIPCFLOW_AIRFLOW_USER"),
        (URL | {"TIPCFLOW_AIRFLOW_USER": "x"}, "TIPCFLOW_AIRFLOW_PASSWORD"),
    ],
)
def test_missing_login_variable_is_named(environ: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        airflow_login(environ)
    assert caught.value.key == key

"""Address and login of Airflow, from environment variables only (docs/reference/configuration.md).

Read without pydantic-settings, which the base installation of a CI host does not have: `tipcflow trigger` needs
only these variables. Other modules call `airflow_url` and `airflow_login` instead of reading them.
"""

import os
from collections.abc import Mapping

from tipcflow.domain import ConfigError, Frozen

_PREFIX = "TIPCFLOW_AIRFLOW_"


class AirflowLogin(Frozen):
    """Address and login of an Airflow; repr omits secrets.

    Attributes:
        url: TIPCFLOW_AIRFLOW_URL.
        token: TIPCFLOW_AIRFLOW_TOKEN; takes precedence over user and password.
        user, password: TIPCFLOW_AIRFLOW_USER, TIPCFLOW_AIRFLOW_PASSWORD.
    """

    url: str
    token: str | None = None
    user: str | None = None
    password: str | None = None

    def __repr__(self) -> str:
        return f"AirflowLogin(url={self.url!r}, user={self.user!r})"

    __str__ = __repr__


def airflow_url(environ: Mapping[str, str] | None = None) -> str:
    """The address in force; '' if none is set."""
    return _variable("URL", environ).strip()


def airflow_login(environ: Mapping[str, str] | None = None) -> AirflowLogin:
    """The login in force; an empty variable counts as unset.

    Secrets have no command-line option, because command lines are visible to all users and kept in logs.

    Raises:
        ConfigError: the address is missing, or the login is missing or incomplete.
    """
    url = airflow_url(environ)
    token, user, password = (_variable(name, environ) or None for name in ("TOKEN", "USER", "PASSWORD"))
    lacks_login = not token and not (user and password)
    if not url and lacks_login:
        raise ConfigError(
            "are not set",
            key=f"TIPCFLOW_AIRFLOW_URL and {'TIPCFLOW_AIRFLOW_PASSWORD' if user else 'TIPCFLOW_AIRFLOW_USER'}",
            expected="the address of Airflow, https://airflow.example.org, and a login: TIPCFLOW_AIRFLOW_USER and "
            "TIPCFLOW_AIRFLOW_PASSWORD, or TIPCFLOW_AIRFLOW_TOKEN",
        )
    if not url:
        raise ConfigError(
            "is not set",
            key="TIPCFLOW_AIRFLOW_URL",
            expected="the address of Airflow, https://airflow.example.org",
        )
    if token:
        return AirflowLogin(url=url, token=token.strip())
    if lacks_login:
        missing = "TIPCFLOW_AIRFLOW_PASSWORD" if user else "TIPCFLOW_AIRFLOW_USER"
        expected = "a password" if user else "a user and TIPCFLOW_AIRFLOW_PASSWORD, or TIPCFLOW_AIRFLOW_TOKEN"
        raise ConfigError("is not set", key=missing, expected=expected)
    return AirflowLogin(url=url, user=user, password=password)


def _variable(name: str, environ: Mapping[str, str] | None) -> str:
    return (os.environ if environ is None else environ).get(f"{_PREFIX}{name}", "")

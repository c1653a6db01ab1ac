"""The file TIPCFLOW_ROLES: users, their roles, and where their passwords are."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from tipcflow.config.access.roles import Role
from tipcflow.config.base import ConfigModel
from tipcflow.config.loader import load_yaml
from tipcflow.domain.errors import ConfigError

# Of a password, in characters: a login of Airflow is a login on the nodes.
SHORTEST = 12
UserName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}$")]
Email = Annotated[str, StringConstraints(pattern=r"^([^@\s]+@[^@\s]+)?$")]


def _roles(roles: tuple[Role, ...]) -> tuple[Role, ...]:
    if len(set(roles)) != len(roles):
        raise ValueError("names a role twice")
    return roles


class User(ConfigModel):
    """A user.

    Attributes:
        roles: at least one.
        password_file: file with the password; a relative path starts at the folder of the roles file.
        password_env: environment variable with the password. Without either, the user logs in by LDAP or OAuth.
        name, email: shown in Airflow.
    """

    roles: Annotated[tuple[Role, ...], AfterValidator(_roles)] = Field(min_length=1)
    password_file: Path | None = None
    password_env: Annotated[str, StringConstraints(pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")] = ""
    name: Annotated[str, StringConstraints(max_length=64)] = ""
    email: Email = ""

    @model_validator(mode="before")
    @classmethod
    def _no_password(cls, data: Any) -> Any:
        # An error about the value of an unknown key would show the password.
        if isinstance(data, dict) and "password" in data:
            raise ValueError("has a password in this file, expected password_file or password_env")
        return data

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if self.password_file and self.password_env:
            raise ValueError("at most one of password_file and password_env")
        return self


class Users(ConfigModel):
    """Content of the file: users by login name; at least one is an admin."""

    users: dict[UserName, User] = Field(min_length=1)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        # Airflow's auth manager compares login names without case.
        if len({name.lower() for name in self.users}) != len(self.users):
            raise ValueError("two login names differ in upper and lower case only")
        emails = [user.email.lower() for user in self.users.values() if user.email]
        if len(set(emails)) != len(emails):
            raise ValueError("two users have the same email")
        if not any(Role.ADMIN in user.roles for user in self.users.values()):
            raise ValueError(f"no user has the role {Role.ADMIN}")
        return self


def load_users(path: Path) -> Users:
    """Return the content of the file.

    Raises:
        ConfigError: the file is missing or invalid.
    """
    return load_yaml(path, Users)


def read_passwords(users: Users, path: Path, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the passwords of all users that have one, by login name. No message contains a password.

    Args:
        path: the roles file.

    Raises:
        ConfigError: a password is missing or too short.
    """
    return {
        name: _password(name, user, path, environ)
        for name, user in users.users.items()
        if user.password_file or user.password_env
    }


def _password(name: str, user: User, path: Path, environ: Mapping[str, str]) -> str:
    if user.password_file:
        place = str(path.parent / user.password_file)
        try:
            text = Path(place).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", "") or "not UTF-8"
            raise ConfigError(
                f"the password file cannot be read: {reason}", file=str(path), key=f"users.{name}", found=place
            ) from error
    else:
        place = user.password_env
        text = environ.get(place, "")
    if len(text) < SHORTEST:
        raise ConfigError(
            f"the password in {place} has {len(text)} characters",
            file=str(path),
            key=f"users.{name}",
            expected=f"at least {SHORTEST} characters",
        )
    return text

"""`tipcflow access …`: roles of users in Airflow."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from tipcflow.cli.output.output import columns, echo_lines, terminal_width
from tipcflow.domain import ConfigError

app = typer.Typer(no_args_is_help=True, help="Roles of users in Airflow.")
# Airflow's modules alone take 10 s on a busy machine.
_LIMIT_S = 600
# Changes Airflow's database, so it is part of the operators; this package imports nothing of Airflow.
_MODULE = "tipcflow_operators.access.command"
RolesFile = Annotated[Path | None, typer.Option("--file", help="Roles file. Default: TIPCFLOW_ROLES.")]


@app.callback()
def _group() -> None:
    """Users of Airflow and their roles, as the roles file lists them."""


@app.command("apply")
def apply(file: RolesFile = None) -> None:
    """Store tipcflow's roles and the users of the roles file in Airflow's database; safe at any time."""
    from tipcflow.config.access.users import load_users, read_passwords

    path = _path(file)
    # Before Airflow is imported, which takes seconds.
    read_passwords(load_users(path), path)
    if find_spec("tipcflow_operators") is None or find_spec("airflow") is None:
        raise ConfigError(
            "this Python has no Airflow", found=sys.executable, expected="pip install 'tipcflow[logins]'"
        )
    # Airflow logs each permission and the warnings of its libraries.
    quiet = {"AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-m", _MODULE, str(path)]
    done = subprocess.run(command, env={**os.environ, **quiet}, timeout=_LIMIT_S, check=False)
    raise typer.Exit(done.returncode)


@app.command("list")
def show_list(file: RolesFile = None) -> None:
    """List the users of the roles file and their roles; report missing passwords."""
    from tipcflow.config.access.users import load_users, read_passwords

    path = _path(file)
    users = load_users(path)
    rows = []
    for name, user in sorted(users.users.items()):
        place = f"file {user.password_file}" if user.password_file else f"variable {user.password_env}"
        has_password = user.password_file or user.password_env
        rows.append((name, ", ".join(user.roles), place if has_password else "none: LDAP or OAuth"))
    echo_lines(columns(("USER", "ROLES", "PASSWORD"), rows, width=terminal_width()))
    read_passwords(users, path)


def _path(file: Path | None) -> Path:
    from tipcflow.config.settings import settings

    path = file.absolute() if file else settings().roles
    if path is None:
        raise ConfigError("is not set", key="TIPCFLOW_ROLES", expected="a YAML file, or the option --file")
    return path

"""The work of `tipcflow access apply`: store the roles of tipcflow and the users of a roles file.

A process of its own, because the command line imports nothing of Airflow:
`python -m tipcflow_operators.access.command FILE`.
"""

import sys
from pathlib import Path

from airflow.configuration import conf

from tipcflow.config.access.users import load_users, read_passwords
from tipcflow.domain import ConfigError, TipcflowError, exit_code
from tipcflow_operators.access.accounts import store_roles, store_users
from tipcflow_operators.airflow.internals import get_application_builder, providers_configuration_loaded

AUTH_MANAGER = "tipcflow_operators.access.manager.RolesAuthManager"


def main(path: Path) -> int:
    """Print a line per change; return the exit code of the status of an error."""
    try:
        for line in apply(path) or ["roles and users are up to date"]:
            print(line, flush=True)  # noqa: T201
    except TipcflowError as error:
        print(f"{error.status.value}: {error}", file=sys.stderr)  # noqa: T201
        return exit_code(error.status)
    return 0


# Its settings have defaults, which Airflow reads from the provider.
@providers_configuration_loaded
def apply(path: Path) -> list[str]:
    """Validate the file before the first change, then change Airflow's database; return a line per change.

    Raises:
        ConfigError: the file is invalid, or Airflow has another auth manager.
        InfraError: Airflow did not store a role or user.
    """
    users = load_users(path)
    passwords = read_passwords(users, path)
    manager = conf.get("core", "auth_manager")
    if manager != AUTH_MANAGER:
        raise ConfigError(
            "Airflow has another auth manager",
            key="AIRFLOW__CORE__AUTH_MANAGER",
            found=manager,
            expected=AUTH_MANAGER,
        )
    with get_application_builder() as builder:
        builder.add_permissions(update_perms=True)
        return store_roles(builder.sm) + store_users(builder.sm, users, passwords)


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))

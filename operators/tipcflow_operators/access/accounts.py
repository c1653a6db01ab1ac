"""Store roles and users in the database of Airflow's FAB provider. Every step may be repeated."""

import secrets
from collections.abc import Iterator, Mapping
from typing import Any

from tipcflow.config.access.users import User, Users
from tipcflow.domain import InfraError
from tipcflow_operators.access.permissions import TABLE, Rights, role_name
from tipcflow_operators.airflow.internals import check_password_hash

# Marks users of the roles file; has no permissions. Users without it belong to LDAP, OAuth or an admin.
MARK = "tipcflow roles file"
# Of a user without an email: unique, as FAB requires, and never delivered.
_NO_EMAIL = "tipcflow.invalid"


def store_roles(manager: Any) -> list[str]:
    """Create the roles and give them exactly the permissions of the table.

    Args:
        manager: FAB's security manager, in the context of its application.

    Returns:
        A line per change.

    Raises:
        InfraError: Airflow did not store a role.
    """
    # Airflow's own roles, of which Admin is one.
    manager.sync_roles()
    if manager.find_role(MARK) is None:
        manager.add_role(MARK)
    changes = [line for rights in TABLE for line in _store_role(manager, rights)]
    # Admin has every permission, also those of the pages.
    manager.update_admin_permission()
    return changes


def _store_role(manager: Any, rights: Rights) -> Iterator[str]:
    role = manager.find_role(rights.name)
    if role is None:
        role = manager.add_role(rights.name)
    stored = {_pair(permission): permission for permission in role.permissions}
    missing, surplus = rights.permissions - set(stored), set(stored) - rights.permissions
    for verb, resource in sorted(missing):
        manager.add_permission_to_role(role, manager.create_permission(verb, resource))
    for pair in sorted(surplus):
        manager.remove_permission_from_role(role, stored[pair])
    if {_pair(permission) for permission in role.permissions} != rights.permissions:
        raise InfraError(f"Airflow did not store the permissions of role {rights.name}; see the messages above")
    if missing or surplus:
        yield f"role {rights.name}: {len(missing)} permissions added, {len(surplus)} removed"


def _pair(permission: Any) -> tuple[str, str]:
    return permission.action.name, permission.resource.name


def store_users(manager: Any, users: Users, passwords: Mapping[str, str]) -> list[str]:
    """Create, change and deactivate users, so that those of the roles file are as it says.

    Users that LDAP, OAuth or an admin made are left alone. A changed password ends the user's sessions.

    Returns:
        A line per change, without passwords.

    Raises:
        InfraError: Airflow did not store a user.
    """
    mark = manager.find_role(MARK)
    changes = []
    for name, user in users.users.items():
        roles = [mark, *(manager.find_role(role_name(role)) for role in user.roles)]
        account = manager.find_user(username=name)
        if account is None:
            # Without a password of its own, the user logs in elsewhere.
            password = passwords.get(name) or secrets.token_urlsafe(32)
            manager.add_user(name, *_names(name, user), _email(name, user), role=roles, password=password)
            changes.append(f"user {name}: created with {_listed(user)}")
        elif changed := _update(manager, account, name, user, roles, passwords.get(name)):
            changes.append(f"user {name}: {', '.join(changed)}")
    known = {name.lower() for name in users.users}
    for account in manager.get_all_users():
        if mark in account.roles and account.active and account.username.lower() not in known:
            account.active, account.roles = False, [mark]
            _save(manager, account)
            changes.append(f"user {account.username}: deactivated")
    return changes


def _update(
    manager: Any, account: Any, name: str, user: User, roles: list[Any], password: str | None
) -> list[str]:
    changed = []
    if {role.name for role in account.roles} != {role.name for role in roles}:
        account.roles = roles
        changed.append(_listed(user))
    if not account.active:
        account.active = True
        changed.append("activated")
    first, last = _names(name, user)
    if (account.first_name, account.last_name, account.email) != (first, last, _email(name, user)):
        account.first_name, account.last_name, account.email = first, last, _email(name, user)
        changed.append("name or email")
    if changed:
        _save(manager, account)
    if password and not check_password_hash(account.password or "", password):
        if not manager.reset_password(account.id, password):
            raise InfraError(f"Airflow did not store the password of user {name}; see the messages above")
        changed.append("new password")
    return changed


def _save(manager: Any, account: Any) -> None:
    if not manager.update_user(account):
        raise InfraError(f"Airflow did not store user {account.username}; see the messages above")


def _listed(user: User) -> str:
    return f"role{'s' if len(user.roles) > 1 else ''} {', '.join(user.roles)}"


def _names(name: str, user: User) -> tuple[str, str]:
    first, _, last = (user.name or name).partition(" ")
    return first, last


def _email(name: str, user: User) -> str:
    return user.email or f"{name.replace('@', '.')}@{_NO_EMAIL}"

"""The roles file: users, roles, places of passwords."""

from pathlib import Path

import pytest

from tipcflow.config.access.roles import ACTIONS, DECISIONS, Action, Role
from tipcflow.config.access.users import load_users, read_passwords
from tipcflow.domain import ConfigError

GOOD = """
users:
  root: {roles: [admin], password_env: ROOT_PASSWORD}
  ci: {roles: [ci], password_file: ci_password}
  alice: {roles: [operator, approver], email: alice@example.com, name: Alice Doe}
"""
WORD = "correct-horse-battery"


def write(folder: Path, text: str) -> Path:
    path = folder / "roles.yaml"
    path.write_text(text)
    return path


def test_users_have_roles_and_passwords(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    users = load_users(path)
    assert users.users["alice"].roles == (Role.OPERATOR, Role.APPROVER)
    (tmp_path / "ci_password").write_text(f"{WORD}-2\n")
    assert read_passwords(users, path, {"ROOT_PASSWORD": WORD}) == {"root": WORD, "ci": f"{WORD}-2"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("users: {}\n", "at least 1 item(s)"),
        ("users: {ci: {roles: [ci]}}\n", "no user has the role admin"),
        ("users: {a: {roles: [root]}}\n", "'viewer', 'ci', 'operator', 'approver' or 'admin'"),
        ("users: {a: {roles: []}}\n", "at least 1 item(s)"),
        ("users: {a: {roles: [admin, admin]}}\n", "names a role twice"),
        ("users: {a: {roles: [admin], password: secret-word}}\n", "users.a: has a password in this file"),
        ("users: {a: {roles: [admin], password_file: x, password_env: Y}}\n", "at most one of password_file"),
        ("users: {a: {roles: [admin], password_env: 'A B'}}\n", "users.a.password_env"),
        ("users: {a: {roles: [admin], email: somewhere}}\n", "users.a.email"),
        ("users: {'a b': {roles: [admin]}}\n", "a b"),
        ("users: {a: {roles: [admin]}, A: {roles: [ci]}}\n", "upper and lower case"),
        ("users: {a: {roles: [admin], email: a@b}, b: {roles: [ci], email: A@b}}\n", "the same email"),
    ],
)
def test_an_invalid_file_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_users(write(tmp_path, text))
    assert words in str(error.value)
    assert "roles.yaml" in str(error.value)
    assert "secret-word" not in str(error.value)


def test_a_missing_or_short_password_is_named_and_not_shown(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    users = load_users(path)
    with pytest.raises(ConfigError, match=r"users.root: the password in ROOT_PASSWORD has 7 characters") as error:
        read_passwords(users, path, {"ROOT_PASSWORD": "hunter2"})
    assert "hunter2" not in str(error.value)
    with pytest.raises(ConfigError, match=r"users.ci: the password file cannot be read: No such file"):
        read_passwords(users, path, {"ROOT_PASSWORD": WORD})
    (tmp_path / "ci_password").write_text("\n")
    with pytest.raises(ConfigError, match="ci_password has 0 characters"):
        read_passwords(users, path, {"ROOT_PASSWORD": WORD})


def test_every_role_has_its_actions() -> None:
    assert set(ACTIONS) == set(Role)
    assert ACTIONS[Role.CI] == {Action.STOP_OWN}
    assert not ACTIONS[Role.OPERATOR] & DECISIONS
    assert ACTIONS[Role.APPROVER] > DECISIONS
    assert len({action.resource for action in Action}) == len(Action)

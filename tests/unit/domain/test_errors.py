"""Errors that a user reads hold no secret."""

from tipcflow.domain import ConfigError, InfraError
from tipcflow.domain.errors import as_clause, why_unreadable


def test_secrets_in_an_error_are_masked() -> None:
    error = InfraError("cannot clone https://ci:hunter2@h/x.git", hint="try https://h/x?token=SECRET123&a=1")
    assert (error.message, error.hint) == ("cannot clone https://ci:***@h/x.git", "try https://h/x?token=***&a=1")
    assert "hunter2" not in str(ConfigError("is no URL", key="git", found="https://ci:hunter2@h/x.git"))


def test_the_detail_of_an_error_omits_the_node_that_the_message_names() -> None:
    error = InfraError.of_node("b", "cannot clone https://ci:hunter2@h/x.git", hint="log in", passing=True)
    assert (error.message, error.node) == ("node b: cannot clone https://ci:***@h/x.git", "b")
    assert (error.detail, error.hint, error.passing) == ("cannot clone https://ci:***@h/x.git", "log in", True)
    assert InfraError("no response from node b", node="b").detail == "no response from node b"


def test_an_error_within_a_sentence_has_its_hint_in_parentheses() -> None:
    error = InfraError.of_node("b", "127.0.0.1 port 22 refuses connections", hint="start sshd")
    assert as_clause(str(error)) == "node b: 127.0.0.1 port 22 refuses connections (start sshd)"
    assert as_clause("train: exit code 1\n") == "train: exit code 1"


def test_the_reason_why_a_file_is_unreadable_omits_its_path() -> None:
    assert why_unreadable(FileNotFoundError(2, "No such file or directory", "x")) == "No such file or directory"
    assert why_unreadable(OSError("broken")) == "broken"
    assert why_unreadable(ValueError("no number")) == "no number"

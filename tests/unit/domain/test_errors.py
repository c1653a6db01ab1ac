"""Errors that a user reads hold no secret."""

from tipcflow.domain import ConfigError, InfraError


def test_secrets_in_an_error_are_masked() -> None:
    error = InfraError("cannot clone https://ci:hunter2@h/x.git", hint="try https://h/x?token=SECRET123&a=1")
    assert (error.message, error.hint) == ("cannot clone https://ci:***@h/x.git", "try https://h/x?token=***&a=1")
    assert "hunter2" not in str(ConfigError("is no URL", key="git", found="https://ci:hunter2@h/x.git"))


def test_the_detail_of_an_error_omits_the_node_that_the_message_names() -> None:
    error = InfraError.of_node("b", "cannot clone https://ci:hunter2@h/x.git", hint="log in", passing=True)
    assert (error.message, error.node) == ("node b: cannot clone https://ci:***@h/x.git", "b")
    assert (error.detail, error.hint, error.passing) == ("cannot clone https://ci:***@h/x.git", "log in", True)
    assert InfraError("no response from node b", node="b").detail == "no response from node b"

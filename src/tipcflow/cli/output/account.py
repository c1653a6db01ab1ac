"""Author and reason of a decision, for commands that store both."""

import os
import pwd
from typing import Annotated

import typer

from tipcflow.domain import ConfigError

Who = Annotated[str, typer.Option(help="Author. Default: the current user.")]
Because = Annotated[str, typer.Option(help="Reason; stored with your name.")]


def account_name(given: str) -> str:
    """The given name, or the account that runs this process."""
    if given.strip():
        return given.strip()
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def reason_of(because: str) -> str:
    """Return the reason without surrounding blanks.

    Raises:
        ConfigError: it is empty.
    """
    if not because.strip():
        raise ConfigError("is empty", key="--because", expected="a reason")
    return because.strip()

"""The current user, for decisions that record a name."""

import os
import pwd


def account_name(given: str) -> str:
    """The given name, or the account that runs this process."""
    if given.strip():
        return given.strip()
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"

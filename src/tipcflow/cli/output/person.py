"""Who types: for decisions that keep a name."""

import os
import pwd


def person(given: str) -> str:
    """The name that was given, else that of the account that runs this process."""
    if given.strip():
        return given.strip()
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"

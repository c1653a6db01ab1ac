"""The docker-compose of this machine: version 1 (`docker-compose`) or version 2 (either name)."""

import os
import shlex
import shutil
import subprocess

# Comes before what is found, e.g. COMPOSE=/opt/docker-compose-2.26.
VARIABLE = "COMPOSE"
_KNOWN = ("docker-compose", "docker compose")


def command() -> list[str]:
    """$COMPOSE, docker-compose or docker compose, whichever comes first; [] if there is none."""
    return next((words for words in _candidates() if version(words)), [])


def command_of_version_2() -> list[str]:
    """The first that has version 2 or later; [] if there is none."""
    return next((words for words in _candidates() if int(version(words).partition(".")[0] or 0) >= 2), [])


def version(words: list[str]) -> str:
    """The version of a docker-compose, '' if the command does not work."""
    if not shutil.which(words[0]):
        return ""
    done = subprocess.run([*words, "version", "--short"], capture_output=True, text=True, check=False, timeout=60)
    return done.stdout.strip().removeprefix("v") if done.returncode == 0 else ""


def _candidates() -> list[list[str]]:
    chosen = shlex.split(os.environ.get(VARIABLE, ""))
    return [*([chosen] if chosen else []), *map(shlex.split, _KNOWN)]

"""What bash makes of a command string: words after field splitting, and which program they start."""

import re
from pathlib import PurePosixPath

from tipcflow.plan.files import FileView

_GLOB = re.compile(r"[*?[]")
_DURATION = re.compile(r"\d+[smh]")
_PYTHON = re.compile(r"python[\d.]*")


def eval_text(command: str, files: FileView) -> str:
    """The text that `eval` gets from an unquoted variable while IFS is `|`: fields, patterns expanded."""
    fields = command.split("|")
    return " ".join(_expanded(field, files) for field in fields)


def _expanded(field: str, files: FileView) -> str:
    if not _GLOB.search(field):
        return field
    return " ".join(files.glob(field)) or field


def runs_python(text: str) -> bool:
    """Whether a command line starts a Python interpreter in one of its simple commands."""
    return any(_program(part) for part in text.split(";"))


def _program(command: str) -> bool:
    words = [word for word in re.split(r"[ \t\n]+", command) if word]  # a carriage return is no blank
    while words and (
        _DURATION.fullmatch(words[0]) or "=" in words[0] or PurePosixPath(words[0]).name in ("env", "timeout")
    ):
        words = words[1:]
    return bool(words) and _PYTHON.fullmatch(PurePosixPath(words[0].strip("\"'")).name) is not None

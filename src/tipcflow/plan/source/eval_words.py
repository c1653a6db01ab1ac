"""Bash evaluation of a command string: the words after field splitting, and the program that they start."""

import re

from tipcflow.plan.source.files import FileView

_GLOB = re.compile(r"[*?[]")
_DURATION = re.compile(r"\d+[smh]")
_PYTHON = re.compile(r"python[\d.]*")
# A carriage return is not a separator.
_WORD = re.compile(r"[^ \t\n]+")


def eval_text(command: str, files: FileView) -> str:
    """Return the text that `eval` gets from an unquoted variable with IFS `|`: fields, patterns expanded."""
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
    """Whether the first word that is neither an assignment nor a wrapper is a Python interpreter."""
    for match in _WORD.finditer(command):
        word = match[0]
        if not ("=" in word or _DURATION.fullmatch(word) or _name(word) in ("env", "timeout")):
            return _PYTHON.fullmatch(_name(word.strip("\"'"))) is not None
    return False


def _name(word: str) -> str:
    """Return the last part of a path."""
    return word.rstrip("/").rpartition("/")[2]

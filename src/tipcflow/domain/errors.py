"""Errors for users: each states where, what was found and what was expected."""

import difflib
from collections.abc import Iterable
from typing import Self

from tipcflow.domain.masking import mask
from tipcflow.domain.run.failure import FailureClass
from tipcflow.domain.status import Status

# Longer values are cut off in messages.
_LONGEST = 300
_HINT = "\n  hint: "


class TipcflowError(Exception):
    """Base of all errors that end a command with a clear message and a status instead of a traceback."""

    status = Status.FAILED

    def __init__(self, message: str, *, hint: str = "") -> None:
        message = mask(message)
        super().__init__(message)
        self.message = message
        self.hint = mask(hint)

    def __str__(self) -> str:
        return f"{self.message}{_HINT}{self.hint}" if self.hint else self.message


def as_clause(text: str) -> str:
    """Return the text of an error, such as the reason of a run, in one line with its hint in parentheses."""
    message, _, hint = text.partition(_HINT)
    return " ".join(f"{message} ({hint})".split() if hint else message.split())


def why_unreadable(error: OSError | ValueError) -> str:
    """Return why a file cannot be read, without its path, which the message names."""
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


def did_you_mean(found: str, known: Iterable[str]) -> str:
    """Return a hint with the known name that is most similar to an unknown one; '' if none is similar."""
    near = difflib.get_close_matches(found, list(known), 1)
    return f"did you mean {near[0]}?" if near else ""


KEYS_SEPARATOR = ", "


class InvalidKeyError(ValueError):
    """The error of a validator of a model about a key below the model.

    Args:
        message: what is wrong, without the key.
        key: path of the key from the model.
        found: the value found, '' to omit it.
        expected: the valid values.
    """

    def __init__(self, message: str, *key: str | int, found: str = "", expected: str = "") -> None:
        super().__init__(f"{key[-1]} {message}" if key else message)
        self.what, self.key, self.found, self.expected = message, key, found, expected


class ConfigError(TipcflowError):
    """Params, suite, cluster or trigger are invalid; nothing was started.

    Args:
        message: what is wrong, as text.
        file: the invalid file ('' for a command-line argument).
        line: 1-based physical line, 0 when unknown.
        key: the key, slot or argument; several are joined by `KEYS_SEPARATOR`.
        found: the value found.
        expected: the valid values.
    """

    status = Status.CONFIG_ERROR

    def __init__(
        self,
        message: str,
        *,
        file: str = "",
        line: int = 0,
        key: str = "",
        found: str = "",
        expected: str = "",
        hint: str = "",
    ) -> None:
        self.what = message
        self.file, self.line, self.key, self.found, self.expected = file, line, key, found, expected
        where = f"{file}:{line}: " if file and line else f"{file}: " if file else ""
        parts = [f"{where}{f'{key}: ' if key else ''}{message}"]
        if found:
            parts.append(f"found {found if len(found) <= _LONGEST else found[:_LONGEST] + '…'!r}")
        if expected:
            parts.append(f"expected {expected}")
        super().__init__("; ".join(parts), hint=hint)


class InfraError(TipcflowError):
    """A problem of a node, the network, a disk, an environment, a host key or a login; the model is not the cause.

    Args:
        message: what happened, as text, with the node's name if one is affected.
        node: the affected node's name, '' if none.
        passing: whether the node was unreachable, which may be temporary; false for a refused login or a wrong
            host key.
        failure_class: class of the failure; None if it is unknown here.
        output: what a program on the node printed about it, '' for nothing; the class may follow from this text.

    Attributes:
        detail: the message without the node's name, for lists in which the node is the heading.
    """

    status = Status.INFRA_FAILURE

    def __init__(
        self,
        message: str,
        *,
        node: str = "",
        hint: str = "",
        passing: bool = False,
        failure_class: FailureClass | None = None,
        output: str = "",
    ) -> None:
        super().__init__(message, hint=hint)
        self.node = node
        self.passing = passing
        self.failure_class = failure_class
        self.output = output
        self.detail = self.message

    @classmethod
    def of_node(cls, node: str, detail: str, *, hint: str = "", passing: bool = False, output: str = "") -> Self:
        """Return an error whose message is the node's name and `detail`."""
        error = cls(f"node {node}: {detail}", node=node, hint=hint, passing=passing, output=output)
        error.detail = mask(detail)
        return error


class DatabaseLostError(InfraError):
    """The SQLite file was deleted, replaced or made read-only while in use: nothing more can be stored in it."""

"""The line of a failed log that a program marks as an error."""

import pytest

from tipcflow.parse.failures.excerpt import last_error

PIP = [
    "Processing ./urllib3-2.8.0-py3-none-any.whl",
    "ERROR: Could not find a version that satisfies the requirement pre-commit (from versions: none)",
    "ERROR: No matching distribution found for pre-commit",
    "Looking in links: /wheels",
]


@pytest.mark.parametrize(
    ("lines", "error"),
    [
        (PIP, PIP[2]),
        (["gcc: error: a.c: No such file or directory", "compilation terminated."], 0),
        (["fatal: not a git repository (or any of the parent directories): .git"], 0),
        (["  error: command 'gcc' failed"], 0),
        (["/opt/conda/bin/g++: fatal error: no input files"], 0),
        # Not marked by a program.
        (["epoch 1, error: rate 0.1", "make: *** [all] Error 1", "the error: of a sentence"], None),
        (["ValueError: bad label", "ERROR:", "errors: 3"], None),
        ([], None),
    ],
)
def test_last_error_is_the_last_marked_line(lines: list[str], error: str | int | None) -> None:
    assert last_error(lines) == (lines[error] if isinstance(error, int) else error)

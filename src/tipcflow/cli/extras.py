"""Names the extra that a command lacks (pyproject.toml, `[project.optional-dependencies]`)."""

import sys

from tipcflow.cli.commands.table import COMMANDS

# Top-level modules that only extras install.
MODULES = frozenset(
    {
        "airflow",
        "alembic",
        "asgiref",
        "asyncssh",
        "croniter",
        "cryptography",
        "fastapi",
        "filelock",
        "fsspec",
        "github",
        "jinja2",
        "matplotlib",
        "numpy",
        "opentelemetry",
        "packaging",
        "pandas",
        "paramiko",
        "prometheus_client",
        "psycopg",
        "pydantic_settings",
        "regex",
        "requests",
        "sqlalchemy",
    }
)
# Module of an option -> the option and its extra.
_OPTIONS = {"matplotlib": ("--plot", "plot")}


def missing_extra(error: ImportError) -> str:
    """Return one line that names the extra to install; '' if the missing module belongs to none."""
    module = (error.name or "").partition(".")[0]
    if module not in MODULES:
        return ""
    word = next((word for word in sys.argv[1:2] if not word.startswith("-")), "")
    if module in _OPTIONS:
        option, extra = _OPTIONS[module]
        return f"tipcflow {word} {option} requires the extra {extra!r}: pip install 'tipcflow[{extra}]'"
    extra = next((command.extra for command in COMMANDS if command.name == word), "") or "run"
    return f"tipcflow {word} requires the extra {extra!r}: pip install 'tipcflow[{extra}]'"

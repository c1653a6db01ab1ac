"""Names the extra that a command lacks (pyproject.toml, `[project.optional-dependencies]`)."""

import sys

# Third-party modules that only an extra installs. `run` has those of `analysis` too, except pandas.
_MODULES = {
    "run": (
        "alembic",
        "croniter",
        "cryptography",
        "filelock",
        "packaging",
        "paramiko",
        "psycopg",
        "pydantic_settings",
        "sqlalchemy",
    ),
    "analysis": ("numpy", "pandas", "regex"),
    "airflow": ("airflow", "asyncssh", "fastapi", "github", "jinja2", "prometheus_client", "requests"),
}
# Commands that start local nodes or a local Airflow, whichever module they lack first.
_LOCAL_COMMANDS = ("demo", "local", "airflow")


def missing_extra(error: ImportError) -> str:
    """Return one line that names the extra to install; '' if the missing module belongs to none."""
    module = (error.name or "").partition(".")[0]
    command = next((word for word in sys.argv[1:2] if not word.startswith("-")), "")
    for extra, modules in _MODULES.items():
        if module in modules:
            extra = "devcluster" if command in _LOCAL_COMMANDS else extra
            return f"tipcflow {command} requires the extra {extra!r}: pip install 'tipcflow[{extra}]'"
    return ""

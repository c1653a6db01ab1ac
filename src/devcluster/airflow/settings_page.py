"""Generator of the table in docs/reference/airflow-settings.md.

Usage: python -m devcluster.airflow.settings_page [configs/airflow.env]
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from devcluster.airflow.settings_file import Setting, read_settings

_HEAD = ("| section | option | value | why |", "|---|---|---|---|")


def table(settings: Sequence[Setting]) -> str:
    """Return the settings as a Markdown table with a trailing newline."""
    rows = [
        f"| `{setting.section}` | `{setting.option}` | `{setting.value}` | {setting.why} |" for setting in settings
    ]
    return "\n".join([*_HEAD, *rows]) + "\n"


def main() -> None:
    """Print the table."""
    path = Path(*sys.argv[1:2] or ["configs/airflow.env"])
    print(table(read_settings(path)), end="")  # noqa: T201


if __name__ == "__main__":
    main()

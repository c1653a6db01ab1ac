"""Keeper of a local Airflow.

Usage: python -m devcluster.keep.airflow, with the configuration on standard input.
"""

from pathlib import Path
from typing import Any

from devcluster.airflow.stack import starting_airflow
from devcluster.keep.keeper import Keeper, keep

# Longer than that of the demo: the user watches the progress, and a loaded machine needs minutes.
READY_DEADLINE_S = 600.0


def own_airflow(keeper: Keeper, config: dict[str, Any]) -> None:
    """Run Airflow until a signal, or until one of its components ends.

    Args:
        config: folders `dags`, `plugins` and `configs`, and the preferred `port`.
    """
    with starting_airflow(
        keeper.home,
        dags=Path(config["dags"]),
        plugins=Path(config["plugins"]),
        configs=Path(config["configs"]),
        port=config["port"],
        report=keeper.note,
    ) as stack:
        stack.start({})
        stack.wait_ready(deadline_s=READY_DEADLINE_S)
        keeper.ready(
            {
                "url": stack.url,
                "user": stack.user,
                "passwords_file": str(stack.passwords_file),
                "logs": str(stack.airflow_home / "components"),
                "dags": config["dags"],
            }
        )
        keeper.stay(stack.check)


if __name__ == "__main__":
    keep("airflow", own_airflow)

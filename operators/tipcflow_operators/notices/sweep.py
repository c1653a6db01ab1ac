"""The sweep `notices` of the DAG `maintenance`: notifies teams of changes since the last hour."""

from typing import TYPE_CHECKING

from tipcflow.config.teams.team import load_teams

if TYPE_CHECKING:
    from tipcflow.execute.sweeps.maintenance import Upkeep


def notices(upkeep: "Upkeep") -> str:
    """Send what is due to the teams of configs/teams; without teams nothing is sent."""
    from airflow.configuration import conf

    from tipcflow.execute.notices.notify import Pass, notify
    from tipcflow_operators.notices.send import send

    teams = load_teams(upkeep.config_dir)
    site = conf.get("api", "base_url", fallback="") or ""
    return notify(Pass(upkeep.store, send, site, upkeep.report, upkeep.now), teams)

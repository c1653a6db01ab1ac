"""Registers the page "Certification" in Airflow's navigation. The page itself is the package next to this file."""

from typing import Any

from airflow.plugins_manager import AirflowPlugin

PREFIX = "/certification"


class TipcflowPlugin(AirflowPlugin):
    """Airflow loads plugins in every process, so the app is made only where it is asked for: in the api-server."""

    name = "tipcflow"
    external_views = [
        {
            "name": "Certification",
            "href": f"{PREFIX.removeprefix('/')}/",
            "url_route": "certification",
            "destination": "nav",
            "nav_top_level": True,
            "icon": f"{PREFIX}/assets/icon.svg",
        }
    ]

    @property
    def fastapi_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """The one app with its prefix."""
        from certification.app import the_app

        return [{"name": "certification", "app": the_app(), "url_prefix": PREFIX}]

"""Registers the page "Certification" in Airflow's navigation. The page itself is the package next to this file."""

from typing import Any

from airflow.plugins_manager import AirflowPlugin

PREFIX = "/certification"


class TipcflowPlugin(AirflowPlugin):
    """Airflow loads plugins in every process, so the app is created lazily: only the api-server requests it."""

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
        """Return the app and its URL prefix."""
        from certification.app import the_app

        return [{"name": "certification", "app": the_app(), "url_prefix": PREFIX}]

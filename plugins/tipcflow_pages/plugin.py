"""Registers the page "Certification" in Airflow's navigation and as a tab of DAGs, DAG runs and tasks.

Found by its entry point `airflow.plugins`.
"""

from typing import Any

from airflow.plugins_manager import AirflowPlugin

PREFIX = "/certification"
_DAG_RUN = "airflow/dag-run?dag_id={DAG_ID}&run_id={RUN_ID}"
# Pages of Airflow that have the tab -> what it shows (`from_airflow`); Airflow replaces the words in braces.
_TABS = {
    "dag": "airflow/dag?dag_id={DAG_ID}",
    "dag_run": _DAG_RUN,
    "task_instance": f"{_DAG_RUN}&task={{TASK_ID}}",
}


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
        },
        *(
            {
                "name": "Certification",
                "href": f"{PREFIX.removeprefix('/')}/{path}",
                "url_route": f"certification-{destination.replace('_', '-')}",
                "destination": destination,
                "icon": f"{PREFIX}/assets/icon.svg",
            }
            for destination, path in _TABS.items()
        ),
    ]

    @property
    def fastapi_apps(self) -> list[dict[str, Any]]:  # type: ignore[override]
        """Return the apps and their URL prefixes; the first matching prefix is used."""
        from tipcflow_pages.app import process_app
        from tipcflow_pages.webhook import the_webhook

        return [
            {"name": "certification webhook", "app": the_webhook(), "url_prefix": f"{PREFIX}/webhook"},
            {"name": "certification", "app": process_app(), "url_prefix": PREFIX},
        ]

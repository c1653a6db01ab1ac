"""The routes of the pages' app, for tests of all of them."""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from fastapi import FastAPI
from starlette.routing import Route

_LIST = """
import json
from starlette.routing import Route
from tipcflow_pages.app import create_app
print(json.dumps([r.path for r in create_app().routes if isinstance(r, Route) and "GET" in (r.methods or ())]))
"""


def methods_and_templates(app: FastAPI) -> Iterable[tuple[str, str]]:
    """(method, path with names in braces) of all routes."""
    return [
        (method, route.path)
        for route in app.routes
        if isinstance(route, Route)
        for method in sorted(route.methods or ())
    ]


def get_templates(airflow_home: Path) -> list[str]:
    """Paths of all GET routes; read in a process of its own, because the app imports Airflow."""
    done = subprocess.run(
        [sys.executable, "-c", _LIST],
        env={"PATH": "/usr/bin:/bin", "AIRFLOW_HOME": str(airflow_home)},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


def filled(template: str, known: Mapping[str, str]) -> str:
    """The path of a route with values for its names.

    Raises:
        KeyError: the route has a name without a value.
    """
    return re.sub(r"\{(\w+)[^}]*\}", lambda found: known[found[1]], template)

"""All routes of Airflow's api-server that may change something, and those that `viewer` and `ci` may use."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from starlette.routing import Mount, Route
from tests.support.page_routes import filled

from tipcflow.config.access.roles import DECISION_DAGS

_READING = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_RUNS, _TASKS = "/api/v2/dags/{dag_id}/dagRuns", "/api/v2/dags/{dag_id}/dagRuns/{dag_run_id}/taskInstances"
_PAGES = "/certification"


class Key(NamedTuple):
    """A route."""

    method: str
    path: str


# Routes that also a viewer may use -> why.
FOR_ALL = {
    Key("POST", f"{_RUNS}/list"): "reads",
    Key("POST", f"{_TASKS}/list"): "reads",
    Key("POST", "/api/v2/dags/{dag_id}/favorite"): "changes a list of the user's own",
    Key("POST", "/api/v2/dags/{dag_id}/unfavorite"): "changes a list of the user's own",
    Key("POST", "/ui/auth/token"): "returns a token of the user's own",
    Key("POST", "/auth/token"): "log in: with a password",
    Key("POST", "/auth/token/cli"): "log in: with a password",
    Key("POST", f"{_PAGES}/webhook/github"): "has a signature of GitHub instead of a login",
}
# Routes that `ci` may use -> why.
FOR_CI = {
    **FOR_ALL,
    Key("POST", _RUNS): "starts a run",
    Key("POST", f"{_PAGES}/ab/new"): "starts a run of the DAG `ab`",
}
LOGIN = Key("POST", "/auth/login/")
LOGINS = {LOGIN: "log in: with a password", Key("POST", "/auth/api/v1/security/login"): "log in: with a password"}
# Forms that a viewer may use -> why.
OWN_FORMS = {
    Key("POST", "/auth/resetmypassword/form"): "changes the user's own password",
    Key("POST", "/auth/userinfoeditview/form"): "changes the user's own name",
}
# Handles paths without a page: 404 for every login.
NOTHING = f"{_PAGES}/{{path:path}}"

_RUN, _ENTITY = {"dag_id": "toy", "dag_run_id": "other"}, {"dag_id": "toy", "dag_run_id": "other", "note": "a"}
_DATES = {"from_date": "2026-01-01T00:00:00Z", "to_date": "2026-01-02T00:00:00Z"}


def _bulk(entity: Mapping[str, Any]) -> dict[str, Any]:
    return {"actions": [{"action": "update", "entities": [entity]}]}


# Of routes whose permission depends on the body. All others get an empty object.
_BODIES = {
    Key("PATCH", _RUNS): _bulk(_ENTITY),
    Key("POST", "/api/v2/dags/{dag_id}/clearDagRuns"): {"dag_runs": [_RUN], "dry_run": False},
    Key("PATCH", "/api/v2/connections"): _bulk({"connection_id": "made", "conn_type": "ssh"}),
    Key("POST", "/api/v2/connections/enqueue-test"): {"connection_id": "made", "conn_type": "ssh"},
    Key("PATCH", "/api/v2/variables"): _bulk({"key": "a", "value": "b"}),
    Key("PATCH", "/api/v2/pools"): _bulk({"name": "default_pool", "slots": 1}),
    Key("POST", "/api/v2/backfills"): {"dag_id": "toy", **_DATES},
    Key("POST", "/api/v2/backfills/dry_run"): {"dag_id": "toy", **_DATES},
}


class Request(NamedTuple):
    """A request to a route."""

    key: Key
    path: str
    body: Any


def write(folder: Path) -> None:
    """Write all routes to a file. For a process with the settings of the api-server."""
    from airflow.api_fastapi.app import create_app

    found: dict[str, set[Key]] = {"api": set(), "forms": set()}
    actions: dict[str, list[str]] = {}
    for key, kind in _routes(create_app(), actions):
        found[kind].add(key)
    text = json.dumps({"actions": actions, **{kind: sorted(keys) for kind, keys in found.items()}})
    (folder / "routes.json").write_text(text)


def _routes(app: Any, actions: dict[str, list[str]], prefix: str = "") -> Iterator[tuple[Key, str]]:
    """Yield each route with its kind, and add to `actions` path of a view of FAB -> names of its actions."""
    for route in app.routes:
        if isinstance(route, Mount):
            flask = getattr(route.app, "app", None)
            if hasattr(flask, "url_map"):
                for view in flask.appbuilder.baseviews:
                    actions[prefix + route.path + view.route_base] = sorted(getattr(view, "actions", ()))
                for rule in flask.url_map.iter_rules():
                    path = prefix + route.path + re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)
                    yield from ((Key(method, path), "forms") for method in rule.methods - _READING)
            elif hasattr(route.app, "routes"):
                yield from _routes(route.app, actions, prefix + route.path)
        elif isinstance(route, Route):
            yield from (
                (Key(method, prefix + route.path), "api") for method in set(route.methods or ()) - _READING
            )


def read(folder: Path, kind: str) -> list[Key]:
    """Return the routes of `write`: `api`, or the `forms` of FAB, which require a session."""
    return [Key(*entry) for entry in json.loads((folder / "routes.json").read_text())[kind]]


def forms(folder: Path, known: Mapping[str, str]) -> Iterator[Request]:
    """Return a request per form of FAB, and one per action of a view, without those of the login.

    Args:
        known: name in a path -> value.
    """
    actions: Mapping[str, list[str]] = json.loads((folder / "routes.json").read_text())["actions"]
    for key in read(folder, "forms"):
        view, _, rest = key.path.rpartition("/action")
        if key in LOGINS:
            continue
        if rest in ("/{name}/{pk}", "_post"):
            for name in actions[view]:
                yield Request(key, filled(key.path, {**known, "name": name}), {"action": name, "rowid": "1"})
        else:
            yield Request(key, filled(key.path, known), {})


def requests(keys: Iterable[Key], known: Mapping[str, str]) -> Iterator[Request]:
    """Return a request per route, or several, whose path names things that exist.

    Args:
        known: name in a path -> value.

    Raises:
        KeyError: a path has a name without a value.
    """
    for key in keys:
        dags = DECISION_DAGS if key.path == f"{_PAGES}/decide/{{dag_id}}" else [known["dag_id"]]
        for dag_id in dags:
            yield Request(key, filled(key.path, {**known, "dag_id": dag_id}), _BODIES.get(key, {}))

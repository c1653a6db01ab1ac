"""Environment classes without the framework, with CUDA and the container's image.

Runs and baselines are rewritten; baselines of classes that become one are put in the order of their acceptance,
so that the newest is in force and the older ones stay visible. The way back takes the framework of the run that a
baseline comes from. Runs with `--diagnose` get the document that keeps them out of every history.
"""

import json
import re
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

KEY = ("chain", "mode", "step", "leg", "metric", "environment")
INCOMPARABLE = "incomparable"


def upgrade() -> None:
    """Rewrite environment classes without the framework."""
    connection = op.get_bind()
    runs, documents = table("runs"), table("documents")
    rewrite(new_key)
    diagnosed = [
        run
        for run, body in connection.execute(
            sa.select(documents.c.run, documents.c.body).where(documents.c.name == "request")
        )
        if (json.loads(body or "null") or {}).get("diagnose")
    ]
    marked = {
        run
        for (run,) in connection.execute(
            sa.select(documents.c.run)
            .join(runs, runs.c.id == documents.c.run)
            .where(documents.c.name == INCOMPARABLE)
        )
    }
    body = json.dumps({"why": "--diagnose"})
    made = [
        {"run": run, "name": INCOMPARABLE, "body": body, "updated_at": time.time()}
        for run in diagnosed
        if run not in marked
    ]
    if made:
        connection.execute(sa.insert(documents), made)


def downgrade() -> None:
    """Rewrite environment classes as older versions form them."""
    documents = table("documents")
    op.get_bind().execute(sa.delete(documents).where(documents.c.name == INCOMPARABLE))
    rewrite(old_key)


def table(name: str) -> sa.Table:
    return sa.Table(name, sa.MetaData(), autoload_with=op.get_bind())


def rewrite(change: Callable[[str, sa.RowMapping], str]) -> None:
    """Give runs and baselines another key.

    Args:
        change: (key, the run's row) -> key.
    """
    connection, runs, baselines = op.get_bind(), table("runs"), table("baselines")
    known = {row["id"]: row for row in connection.execute(sa.select(runs)).mappings()}
    for row in known.values():
        key = change(row["environment"], row)
        if key != row["environment"]:
            connection.execute(sa.update(runs).where(runs.c.id == row["id"]).values(environment=key))
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for baseline in connection.execute(sa.select(baselines)).mappings():
        mine = dict(baseline) | {"environment": change(baseline["environment"], known[baseline["run"]])}
        groups[tuple(mine[name] for name in KEY)].append(mine | {"before": baseline["environment"]})
    made = []
    for group in groups.values():
        group.sort(key=lambda entry: (entry["accepted_at"], entry["ordinal"], entry.pop("before")))
        made += [entry | {"ordinal": number} for number, entry in enumerate(group)]
    if made:
        connection.execute(sa.delete(baselines))
        connection.execute(sa.insert(baselines), made)


def new_key(key: str, run: sa.RowMapping) -> str:
    """`gpu/8x-v100/1-nodes/8-ranks/paddle-3.3/driver-535` -> `…/8-ranks/driver-535/cuda-12.6`."""
    parts = [part for part in key.split("/") if part]
    ranks = next((number for number, part in enumerate(parts) if part.endswith("-ranks")), None)
    if ranks is None:
        return key
    parts = parts[: ranks + 1] + [part for part in parts[ranks + 1 :] if part.startswith("driver-")]
    cuda = sorted({".".join(version.split(".")[:2]) for version in facts_of(run, "cuda") if version})
    if parts[0] == "gpu" and cuda:
        parts.append(f"cuda-{'+'.join(cuda)}")
    images = sorted({image_name(image) for image in images_of(run) if image})
    if images:
        parts.append(f"image-{'+'.join(images)}")
    return "/".join(parts)


def old_key(key: str, run: sa.RowMapping) -> str:
    """The key with the run's framework, as name with major and minor version."""
    parts = [part for part in key.split("/") if part and not part.startswith(("cuda-", "image-"))]
    ranks = next((number for number, part in enumerate(parts) if part.endswith("-ranks")), None)
    name, _, version = run["framework"].partition(" ")
    if ranks is None or not name:
        return "/".join(parts)
    name = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-")
    return "/".join([*parts[: ranks + 1], f"{name}-{'.'.join(version.split('.')[:2])}", *parts[ranks + 1 :]])


def image_name(image: str) -> str:
    folder, slash, name = image.partition("@")[0].rpartition("/")
    return re.sub(r"[^a-z0-9.]+", "-", f"{folder}{slash}{name.partition(':')[0]}".lower()).strip("-")


def facts_of(run: sa.RowMapping, name: str) -> list[str]:
    """A fact of every node that the run used."""
    environments = table_once("environments")
    query = sa.select(environments.c.node, environments.c.facts).where(environments.c.run == run["id"])
    used = set(json.loads(run["nodes"] or "[]"))
    rows = op.get_bind().execute(query).all()
    return [str(json.loads(facts).get(name) or "") for node, facts in rows if node in used]


def images_of(run: sa.RowMapping) -> list[str]:
    """The image of every node's container."""
    documents = table_once("documents")
    query = sa.select(documents.c.body).where(documents.c.run == run["id"], documents.c.name == "cluster")
    cluster = json.loads(op.get_bind().execute(query).scalar() or "null") or {}
    used = set(json.loads(run["nodes"] or "[]"))
    containers = [node.get("container") for node in cluster.get("nodes", ()) if node.get("name") in used]
    return [str(container["image"]) for container in containers if container]


def table_once(name: str) -> sa.Table:
    """The columns that are read, without a query for each run."""
    columns = {"environments": ("run", "node", "facts"), "documents": ("run", "name", "body")}[name]
    return sa.Table(name, sa.MetaData(), *(sa.Column(column, sa.Text()) for column in columns))

"""Runs and their ids."""

import re
import secrets
from datetime import UTC, datetime

from tipcflow.domain.base import Frozen
from tipcflow.domain.status import Status

RUN_ID = re.compile(r"^[a-z0-9][a-z0-9_.-]{0,127}$")


def new_run_id(chain: str, *, now: datetime | None = None) -> str:
    """A run id that sorts by time, is unique without a database, and is safe as a file name and a URL part.

    Form: `20261121t093005-<chain, shortened>-<4 hex digits>`.
    """
    stamp = (now or datetime.now(UTC)).strftime("%Y%m%dt%H%M%S")
    slug = re.sub(r"[^a-z0-9]+", "_", chain.rsplit("/", 1)[-1].lower()).strip("_")[:60] or "run"
    return f"{stamp}-{slug}-{secrets.token_hex(2)}"


class Run(Frozen):
    """One execution of a chain. `status` is None while it goes on or a check is being confirmed.

    `environment` is the environment class: what makes two runs comparable, as a readable stable key.
    """

    schema_version: int = 1
    id: str
    chain: str
    suite: str
    model: str
    mode: str
    cluster: str
    trigger: str = "cli"
    suite_commit: str = ""
    suite_sha256: str = ""
    framework: str = ""
    seed: int | None = None
    compat: str = "spec"
    nodes: tuple[str, ...] = ()
    environment: str = ""
    status: Status | None = None
    reason: str = ""
    created_at: float
    ended_at: float | None = None

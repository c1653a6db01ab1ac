"""Runs and run IDs."""

import base64
import hashlib
import re
import secrets
from datetime import UTC, datetime

from tipcflow.domain.base import Frozen
from tipcflow.domain.run.names import DagId
from tipcflow.domain.status import Status

RUN_ID = re.compile(r"^[a-z0-9][a-z0-9_.-]{0,127}$")
# 16 characters.
_DIGEST_BYTES = 10


def new_run_id(chain: str, *, now: datetime | None = None) -> str:
    """Return a run ID that sorts by time, is unique without a database, and is safe in file names and URLs.

    Form: `20261121t093005-<chain, shortened>-<10 hex digits>`. Only these 40 random bits distinguish the two runs
    of an A/B pair, whose IDs are made in the same second. IDs of DAG runs end with 8 or 16 characters instead.
    """
    stamp = (now or datetime.now(UTC)).strftime("%Y%m%dt%H%M%S")
    slug = re.sub(r"[^a-z0-9]+", "_", chain.rsplit("/", 1)[-1].lower()).strip("_")[:60] or "run"
    return f"{stamp}-{slug}-{secrets.token_hex(5)}"


class Run(Frozen):
    """One execution of a chain. `status` is None while it is running or a check is being confirmed.

    `environment` is the environment class: the readable, stable key of comparable runs.
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

    @property
    def duration_s(self) -> float | None:
        """Return the seconds from its creation to its end, with the wait for slots; None before the end."""
        return None if self.ended_at is None else self.ended_at - self.created_at

    def elapsed_s(self, now: float) -> float:
        """Return the seconds from its creation to its end, or to `now` before the end."""
        return (self.ended_at or now) - self.created_at


def run_id_of(dag_id: str, dag_run_id: str, run_after: datetime) -> str:
    """Return the run ID of a DAG run: equal in every task, attempt and observer, computed without I/O.

    Form: as `new_run_id`, but the last part is 80 bits of a hash of both IDs: users choose the ID and the date of
    a DAG run, and could find an ID with an equal hash of 32 bits within minutes (ADR 53).

    Args:
        dag_id: a `DagId`; the model of a chain's makes the run ID readable.
        dag_run_id: Airflow's id of the DAG run, unique within the DAG.
        run_after: Airflow's `run_after`, which does not change when the run is cleared and re-run.
    """
    digest = base64.b32encode(_hash(dag_id, dag_run_id)[:_DIGEST_BYTES]).decode().lower()
    return f"{_beginning(dag_id, run_after)}-{digest}"


def short_run_id_of(dag_id: str, dag_run_id: str, run_after: datetime) -> str:
    """Return the run ID that earlier versions gave a DAG run: with 8 hex digits of the hash."""
    return f"{_beginning(dag_id, run_after)}-{_hash(dag_id, dag_run_id).hex()[:8]}"


def _hash(dag_id: str, dag_run_id: str) -> bytes:
    return hashlib.sha256(f"{dag_id}\0{dag_run_id}".encode()).digest()


def _beginning(dag_id: str, run_after: datetime) -> str:
    stamp = run_after.astimezone(UTC).strftime("%Y%m%dt%H%M%S")
    slug = re.sub(r"[^a-z0-9]+", "_", (DagId.parse(dag_id).model or dag_id).lower()).strip("_")[:60] or "run"
    return f"{stamp}-{slug}"


def dag_id_of(chain: str) -> str:
    """Return the ID of a chain's DAG as text (`DagId.of_chain`)."""
    return str(DagId.of_chain(chain))

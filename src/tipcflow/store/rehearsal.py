"""Runs the queries of a step's task once in advance, so that forked processes inherit the compiled statements.

SQLAlchemy makes a statement's text when an engine sees it first, which was a third of a short task's CPU time. An
engine that has seen them is kept for the processes that are forked from this one; no connection of it is.
"""

import sqlite3
import time
from typing import Any

from sqlalchemy import event, insert

from tipcflow.domain import Measurement, MemberState, Phase, Plan, Run, Status, Step, StepKind
from tipcflow.domain.plan import Compat
from tipcflow.domain.run_documents import CutDocument
from tipcflow.store.engine import make_engine, normal_url, writing
from tipcflow.store.repository import Store, keep_engine
from tipcflow.store.schema import fences, metadata

_RUN, _STEP, _NODE = "rehearsal", "rehearsal", "rehearsal"


def rehearse(url: str) -> None:
    """Make the statements of a step's task, on an empty database in memory, for a SQLite database of that URL.

    The database itself is not touched, nor need it be there. Other databases cannot be rehearsed: their dialect
    queries a server first.

    Raises:
        ConfigError: it is not a URL of a database.
    """
    parsed = normal_url(url)
    if parsed.get_backend_name() != "sqlite" or parsed.database in (None, "", ":memory:"):
        return
    engine = make_engine(url)

    def in_memory(*_: Any) -> sqlite3.Connection:
        return sqlite3.connect(":memory:", check_same_thread=False)

    event.listen(engine, "do_connect", in_memory)
    try:
        metadata.create_all(engine)
        with writing(engine) as connection:
            connection.execute(insert(fences), {"id": 1, "last": 0})
        _run_queries(Store(engine, url))
    finally:
        event.remove(engine, "do_connect", in_memory)
        engine.dispose()
    keep_engine(url, engine)


def _run_queries(store: Store) -> None:
    """A run of one step, as its task queries it."""
    now = time.time()
    step = Step(id=_STEP, kind=StepKind.EVAL, nodes=(_NODE,))
    names = dict.fromkeys(("chain", "suite", "dialect", "model", "params_file", "params_sha256", "mode"), "")
    plan = Plan(**names, compat=Compat.SPEC, steps=(step,))  # type: ignore[arg-type]
    store.runs.create(
        Run(id=_RUN, chain="", suite="", model="", mode="", cluster="", trigger="", created_at=now), plan
    )
    store.documents.put(_RUN, CutDocument())
    store.leases.acquire(_RUN, [(_NODE, 0)], owner="", ttl_s=1.0)
    store.members.is_under_way(_RUN, _STEP, node=_NODE, generation=1)
    store.runs.get(_RUN), store.plans.get(_RUN), store.steps.statuses(_RUN), store.nodes.facts(_RUN)
    store.attempts.open_number(_RUN, _STEP)
    store.documents.get(_RUN, CutDocument)
    store.leases.renew(_RUN, ttl_s=1.0)
    store.steps.clear(_RUN, [_STEP])
    attempt = store.members.join(_RUN, _STEP, [_NODE], node=_NODE, generation=1).attempt
    store.attempts.of(_RUN)
    store.members.put(_RUN, _STEP, attempt, MemberState(node=_NODE))
    store.members.of(_RUN, _STEP, attempt)
    measurement = Measurement(
        run=_RUN, step=_STEP, attempt=attempt, node=_NODE, metric="m", phase=Phase.EVAL, value=1.0, unit=""
    )
    store.measurements.add([measurement])
    store.documents.merge(_RUN, CutDocument, {_STEP: ("",)})
    store.attempts.close(_RUN, _STEP, attempt, Status.PASS, "", [], now)
    store.steps.set(_RUN, _STEP, Status.PASS)
    store.steps.set_leg(_RUN, _STEP, "leg", attempt, Status.PASS)
    store.members.join(_RUN, _STEP, [_NODE], node=_NODE, generation=1)

"""FastAPI dependencies: settings and metrics database of this process; a run by its id."""

import gc
from collections.abc import Iterator
from functools import lru_cache
from typing import Annotated

from fastapi import Depends, HTTPException, Request

from tipcflow.config.settings import Settings, settings
from tipcflow.execute.verdict.run_data import load_run
from tipcflow.report.run.data import RunData
from tipcflow.store.queries.readonly import ReadonlyStore
from tipcflow_pages.data.dag_run import lasting_run_id


def current_settings() -> Settings:
    """Return tipcflow's settings; a dependency, so that tests can override it."""
    return settings()


# New objects before a collection of garbage. A page of thousands of lines creates tens of thousands of objects and
# no cycles: with the 700 of Python, collections take a third of its time.
_COLLECTED = 50_000

SettingsDep = Annotated[Settings, Depends(current_settings)]


@lru_cache(maxsize=4)
def _store(url: str) -> ReadonlyStore:
    # Airflow's api-server has loaded its modules before the first request. Without the freeze, each collection of
    # the oldest generation visits their objects, which adds about 100 ms to a request.
    gc.freeze()
    gc.set_threshold(_COLLECTED, *gc.get_threshold()[1:])
    return ReadonlyStore.of(url)


def usable_store(chosen: Settings) -> ReadonlyStore:
    """Return the store after checking with two small queries that it is usable.

    Raises:
        ConfigError, InfraError: it is not usable; `app` shows the error as a page.
    """
    store = _store(chosen.database_url)
    store.refuse_unusable()
    return store


def store_of_request(request: Request, chosen: SettingsDep) -> Iterator[ReadonlyStore]:
    """Yield a store with one connection, and note for the page whether runs are generated."""
    with usable_store(chosen).snapshot() as store:
        request.state.is_generated = store.recorded.has_generated()
        yield store


StoreDep = Annotated[ReadonlyStore, Depends(store_of_request)]


def run_data(store: ReadonlyStore, run_id: str) -> RunData:
    """Return the run with exactly this ID, or with the short ID of an earlier version.

    Raises:
        HTTPException: 404, there is none.
    """
    run = store.runs.get_or_none(run_id)
    if run is None and (lasting := lasting_run_id(run_id)):
        run = store.runs.get_or_none(lasting)
    if run is None:
        raise HTTPException(404, f"no such run: {run_id}")
    return load_run(store, run)

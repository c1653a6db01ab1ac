"""FastAPI dependencies: settings and metrics database of this process."""

from functools import lru_cache
from typing import Annotated

from fastapi import Depends

from tipcflow.config.settings import Settings, settings
from tipcflow.store.queries.readonly import ReadonlyStore


def the_settings() -> Settings:
    """Return tipcflow's settings; a dependency, so that tests can override it."""
    return settings()


SettingsDep = Annotated[Settings, Depends(the_settings)]


@lru_cache(maxsize=4)
def _store(url: str) -> ReadonlyStore:
    return ReadonlyStore.of(url)


def usable_store(chosen: SettingsDep) -> ReadonlyStore:
    """Return the store after checking with two small queries that it is usable.

    Raises:
        ConfigError, InfraError: it is not usable; `app` shows the error as a page.
    """
    store = _store(chosen.database_url)
    store.refuse_unusable()
    return store


StoreDep = Annotated[ReadonlyStore, Depends(usable_store)]

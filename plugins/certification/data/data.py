"""The metrics database of this process, and what may go wrong with it, in words."""

from functools import lru_cache
from typing import Annotated

from fastapi import Depends

from tipcflow.config.settings import Settings, settings
from tipcflow.store.queries.readonly import ReadonlyStore


def the_settings() -> Settings:
    """The settings of tipcflow; a dependency, so that tests can set others."""
    return settings()


SettingsDep = Annotated[Settings, Depends(the_settings)]


@lru_cache(maxsize=4)
def _store(url: str) -> ReadonlyStore:
    return ReadonlyStore.of(url)


def usable_store(chosen: SettingsDep) -> ReadonlyStore:
    """The store, asked first whether it can be used: that costs two small queries, and no page has to guess.

    Raises:
        ConfigError, InfraError: it cannot; `app` shows them as a page.
    """
    store = _store(chosen.database_url)
    store.refuse_unusable()
    return store


StoreDep = Annotated[ReadonlyStore, Depends(usable_store)]

"""Suites whose framework no cluster has."""

from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tipcflow.config.cluster import load_cluster, missing_framework
from tipcflow.config.suite import load_suite
from tipcflow.domain import Cluster, ConfigError
from tipcflow.execute.node.in_use import why_unused

if TYPE_CHECKING:
    from tipcflow.store import Store

# The template in this folder.
_TEMPLATE = "example"


class Clusters:
    """The clusters in use in a configuration folder, each file read once; runs report invalid files."""

    def __init__(self, store: "Store", config_dir: Path) -> None:
        self._store, self._config_dir = store, config_dir
        self.reasons = lru_cache(maxsize=None)(self._reasons)

    def _reasons(self, suite: str) -> tuple[str, ...]:
        """Return why no cluster can run a suite, one reason per cluster; empty if one can, or if there is none."""
        try:
            loaded = load_suite(suite, self._config_dir)
        except ConfigError:
            return ()
        reasons = [missing_framework(loaded, cluster) for cluster in self._clusters]
        return tuple(reasons) if all(reasons) else ()

    @cached_property
    def _clusters(self) -> list[Cluster]:
        clusters = []
        for path in sorted((self._config_dir / "clusters").glob("*.yaml")):
            if path.stem == _TEMPLATE:
                continue
            try:
                if why_unused(self._store, path.stem, self._config_dir):
                    continue
                clusters.append(load_cluster(path.stem, self._config_dir))
            except ConfigError:
                continue
        return clusters

"""The store of the pages."""

import gc
from pathlib import Path

from tipcflow_pages.data import data


def test_pages_collect_garbage_less_often(tmp_path: Path) -> None:
    before = gc.get_threshold()
    try:
        data._store(f"sqlite:///{tmp_path / 'x.db'}")
        assert gc.get_threshold() == (50_000, *before[1:])
    finally:
        gc.set_threshold(*before)

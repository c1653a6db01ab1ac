"""A SQLite file that another writer holds."""

from pathlib import Path

from tipcflow.store.engine import make_engine


def test_a_file_that_is_held_for_half_a_minute_is_waited_for(tmp_path: Path) -> None:
    with make_engine(f"sqlite:///{tmp_path}/x.db").connect() as connection:
        waits_ms = connection.exec_driver_sql("PRAGMA busy_timeout").scalar()
    assert isinstance(waits_ms, int)
    assert waits_ms >= 2 * 30_000

"""Queries rehearsed beforehand need not be prepared again, and rehearsing touches no database."""

from pathlib import Path

from sqlalchemy import event

from tipcflow.domain.run_documents import LeaseDocument
from tipcflow.store import Store, repository
from tipcflow.store.rehearsal import rehearse


def made_texts(store: Store) -> list[str]:
    """Fills with the statements whose text has to be made."""
    made: list[str] = []

    @event.listens_for(store.database.engine, "before_cursor_execute")
    def look(_: object, __: object, statement: str, ___: object, context: object, ____: bool) -> None:
        if getattr(context, "compiled", None) is not None and "generated" in context._get_cache_stats():  # type: ignore[attr-defined]
            made.append(statement)

    return made


def ask(store: Store) -> None:
    store.members.of("r", "s", 1)
    store.documents.get("r", LeaseDocument)
    store.attempts.of("r")
    store.steps.statuses("r")
    store.leases.renew("r", ttl_s=1.0)


def test_a_rehearsed_statement_is_not_made_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    with Store.open(url) as store:
        made = made_texts(store)
        ask(store)
        assert len(made) >= 5  # otherwise the next lines would prove nothing
    rehearse(url)
    with Store.open(url) as store:
        made = made_texts(store)
        ask(store)
        assert made == []


def test_the_database_is_not_touched(tmp_path: Path) -> None:
    file = tmp_path / "b.db"
    rehearse(f"sqlite:///{file}")
    assert not file.exists()
    assert repository._KEPT[f"sqlite:///{file}"].pool.checkedin() == 0  # type: ignore[attr-defined]
    with Store.open(f"sqlite:///{file}") as store:
        assert store.runs.newest() == []
        assert store.members.of("rehearsal", "rehearsal", 1) == {}
    assert file.exists()


def test_a_server_is_not_rehearsed() -> None:
    rehearse("postgresql://user@127.0.0.1:1/none")
    assert "postgresql://user@127.0.0.1:1/none" not in repository._KEPT

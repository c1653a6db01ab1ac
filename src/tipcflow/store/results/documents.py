"""Documents of a run (`tipcflow.domain.run_documents`)."""

import contextlib
import time
from collections.abc import Collection, Iterable, Mapping
from typing import Any, TypeVar

from sqlalchemy import Connection, delete, select

from tipcflow.domain.run_documents import Document, DocumentError, Fields, MergeBaseDocument
from tipcflow.store.base import Part, among, upsert
from tipcflow.store.run import line_states
from tipcflow.store.schema import documents, runs

D = TypeVar("D", bound=Document)


class Documents(Part):
    """Table documents: typed values of a run, each stored under its name."""

    def get(self, run_id: str, kind: type[D]) -> D | None:
        """Return the run's document of that type, None if it does not exist.

        Raises:
            DocumentError: the stored value is invalid.
        """
        return self.several(run_id, (kind,)).get(kind)

    def several(self, run_id: str, kinds: Iterable[type[Document]]) -> "LoadedDocuments":
        """Return the existing documents of these types, read in one query.

        Raises:
            DocumentError: a stored value is invalid.
        """
        by_name = {kind.NAME: kind for kind in kinds}
        query = select(documents.c.name, documents.c.body)
        query = query.where(documents.c.run == run_id, documents.c.name.in_(list(by_name)))
        with self._read() as connection:
            bodies = {name: body for name, body in connection.execute(query) if body is not None}
        return LoadedDocuments({by_name[name]: by_name[name].load(run_id, body) for name, body in bodies.items()})

    def of_type(self, kind: type[D]) -> dict[str, D]:
        """Return run ID -> document for all runs that have a document of that type; for types that few runs have.

        Raises:
            DocumentError: a stored value is invalid.
        """
        query = select(documents.c.run, documents.c.body)
        query = query.where(documents.c.name == kind.NAME, documents.c.body.is_not(None))
        with self._read() as connection:
            return {run: kind.load(run, body) for run, body in connection.execute(query)}

    def of_runs(self, kind: type[D], run_ids: Collection[str]) -> dict[str, D]:
        """Return run ID -> document for those of the runs that have a valid document of that type."""
        found: dict[str, D] = {}
        with self._read() as connection:
            query = select(documents.c.run, documents.c.body).where(
                documents.c.name == kind.NAME,
                documents.c.body.is_not(None),
                among(connection, documents.c.run, run_ids),
            )
            for run, body in connection.execute(query):
                with contextlib.suppress(DocumentError):
                    found[run] = kind.load(run, body)
        return found

    def put(self, run_id: str, document: Document) -> None:
        """Store a document, replacing an earlier one of its type."""
        with self._write() as connection:
            _put(connection, run_id, document.NAME, document.body())
            _refresh_state(connection, run_id, type(document))

    def add(self, run_id: str, document: D) -> D:
        """Store a document unless the run has one of its type; return the one that the run has then."""
        with self._write() as connection:
            before = _locked(connection, run_id, document.NAME)
            if before is not None:
                return type(document).load(run_id, before)
            _put(connection, run_id, document.NAME, document.body())
            _refresh_state(connection, run_id, type(document))
        return document

    def remove(self, run_id: str, kind: type[Document]) -> None:
        """Remove the run's document of that type, if there is one."""
        conditions = (documents.c.run == run_id, documents.c.name == kind.NAME)
        with self._write() as connection:
            connection.execute(delete(documents).where(*conditions))
            _refresh_state(connection, run_id, kind)

    def merge(
        self, run_id: str, kind: type[Document], entries: Mapping[Any, Any], *, without: Collection[object] = ()
    ) -> None:
        """Merge entries into a document that is a mapping; concurrent writers lose no entries.

        Args:
            entries: key as in the document -> value.
            without: keys whose earlier entries are removed, unless `entries` replaces them.
        """
        if not entries and not without:
            return
        fresh, replaced = kind.model_validate(entries).body(), {str(key) for key in without}
        with self._write() as connection:
            before = _locked(connection, run_id, kind.NAME) or {}
            remaining = {key: value for key, value in before.items() if key not in replaced}
            if entries or remaining != before:
                _put(connection, run_id, kind.NAME, {**remaining, **fresh})

    def change(self, run_id: str, kind: type[Fields], **fields: Any) -> None:
        """Set fields of an existing document; concurrent writers of other fields lose nothing."""
        with self._write() as connection:
            before = _locked(connection, run_id, kind.NAME)
            if before is not None:
                _put(connection, run_id, kind.NAME, kind.load(run_id, {**before, **fields}).body())

    def names(self, run_id: str) -> list[str]:
        """Return the names of a run's documents, sorted."""
        query = select(documents.c.name).where(documents.c.run == run_id, documents.c.body.is_not(None))
        with self._read() as connection:
            return sorted(connection.execute(query).scalars())


class LoadedDocuments:
    """Documents of a run by type."""

    def __init__(self, by_kind: Mapping[type[Document], Document]) -> None:
        self._by_kind = by_kind

    def get(self, kind: type[D]) -> D | None:
        """Return the document of that type, None if it does not exist."""
        document = self._by_kind.get(kind)
        return document if isinstance(document, kind) else None


def _locked(connection: Connection, run_id: str, name: str) -> Any:
    """Return a document's stored value after locking the run's row: the document itself may not exist yet."""
    connection.execute(select(runs.c.id).where(runs.c.id == run_id).with_for_update())
    return connection.execute(
        select(documents.c.body).where(documents.c.run == run_id, documents.c.name == name)
    ).scalar()


def _refresh_state(connection: Connection, run_id: str, kind: type[Document]) -> None:
    """A run with a merge base is not the state of its line."""
    if kind is MergeBaseDocument:
        line_states.refresh(connection, [line_states.key_of(connection, run_id)])


def _put(connection: Connection, run_id: str, name: str, body: Any) -> None:
    row = {"run": run_id, "name": name, "body": body, "updated_at": time.time()}
    connection.execute(upsert(connection, documents), row)

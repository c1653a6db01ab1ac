"""Documents of runs for tests."""

from pathlib import Path
from typing import Any

from tipcflow.domain.run_documents import Document
from tipcflow.execute.request import RequestDocument, RunRequest
from tipcflow.store import Store
from tipcflow.store.base import upsert
from tipcflow.store.engine import writing
from tipcflow.store.schema import documents


def request_document(**changes: Any) -> RequestDocument:
    """The document of a request for the sample."""
    return RequestDocument(
        RunRequest("f.txt", "sample", "lite_train_lite_infer", "local", Path("configs"), **changes)
    )


def store_raw(store: Store, run: str, kind: type[Document], body: Any) -> None:
    """Store a JSON value as an earlier or later version did."""
    row = {"run": run, "name": kind.NAME, "body": body, "updated_at": 0.0}
    with writing(store.database.engine) as connection:
        connection.execute(upsert(connection, documents), row)

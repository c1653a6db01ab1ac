"""Keys of stored documents: JSON that earlier versions stored loads with typed keys, and is stored as before."""

import re
from typing import Any

import pytest

from tipcflow.domain import AttemptKey, LegKey, MemberKey, PartKey, WaitKey
from tipcflow.domain.keys import TextKey
from tipcflow.domain.run.kept_files import KeptDocument
from tipcflow.domain.run_documents import (
    AutologDocument,
    ConfirmationDocument,
    Document,
    DocumentError,
    EngineDocument,
    FailuresDocument,
    LateLogsDocument,
    PredictionsDocument,
    ReportersDocument,
    ReportsDocument,
    Root,
    WaitsDocument,
)

LEG = LegKey("v/infer_cpu", "bs1")
OOM = {"failure_class": "oom_gpu"}


@pytest.mark.parametrize(
    ("kind", "body", "keys"),
    [
        (WaitsDocument, {"v/infer_gpu 1": 7.5}, [WaitKey("v/infer_gpu", 1)]),
        (
            FailuresDocument,
            {"before": OOM, "v/train~2": OOM, "v/eval~0": OOM},
            ["before", AttemptKey("v/train", 2), AttemptKey("v/eval", 0)],
        ),
        (KeptDocument, {"v/train~2": {"node-a/train.log": "00"}}, [AttemptKey("v/train", 2)]),
        (LateLogsDocument, {"v/train~2/node-a": {"done": True}}, [MemberKey("v/train", 2, "node-a")]),
        (
            PredictionsDocument,
            {"v/eval": {"0.png": [0.5]}, "v/infer_cpu/bs1": {"0.png": [0.25]}},
            [PartKey("v/eval"), LEG.part],
        ),
        (AutologDocument, {"v/infer_cpu/bs1": {"batch_size": "1"}}, [LEG]),
        (ReportsDocument, {"v/infer_cpu/bs1": {"at": 3.0, "timed": False}}, [LEG]),
        (EngineDocument, {"v/infer_cpu/bs1": {"onednn": "True"}}, [LEG]),
        (ReportersDocument, {"v/infer_cpu/bs1": "auto_log 1.2.3"}, [LEG]),
    ],
)
def test_stored_keys_are_read_by_parts_and_stored_as_before(
    kind: type[Root[Any]], body: dict[str, Any], keys: list[TextKey | str]
) -> None:
    document = kind.load("r1", body)
    assert list(document.root) == keys
    again = document.body()
    assert list(again) == list(body)
    assert kind.load("r1", again) == document


def test_suspected_parts_are_stored_as_texts() -> None:
    body = {"run": "child", "keys": ["v/train", "v/infer_cpu/bs1"], "until": 5.0}
    confirmation = ConfirmationDocument.load("r1", body)
    assert confirmation.keys == (PartKey("v/train"), LEG.part)
    assert confirmation.body()["keys"] == body["keys"]


@pytest.mark.parametrize(
    ("kind", "body", "key", "form"),
    [
        (WaitsDocument, {"v/train": 1.0}, "v/train", "step generation"),
        (FailuresDocument, {"v/train": OOM}, "v/train", "step~attempt"),
        (KeptDocument, {"v/train~x": {}}, "v/train~x", "step~attempt"),
        (LateLogsDocument, {"v/train~1": {"done": True}}, "v/train~1", "step~attempt/node"),
    ],
)
def test_an_invalid_key_is_named_with_its_form(kind: type[Document], body: Any, key: str, form: str) -> None:
    message = f"run r1: document {kind.NAME!r} is invalid: {key}: {key!r} is not a key {form!r}"
    with pytest.raises(DocumentError, match=f"^{re.escape(message)}$"):
        kind.load("r1", body)

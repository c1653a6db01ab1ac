import json
import math
from typing import Any

import numpy as np
import pytest
from sqlalchemy.exc import IntegrityError
from tests.support.documents import store_raw
from tests.support.stories import a_plan, a_run, some_facts

from tipcflow.domain import CheckResult, EvidenceKey, Failure, FailureClass, MetricKey, NodeFacts, Status
from tipcflow.domain.keys import AttemptKey, PartKey, PredictionKey
from tipcflow.domain.run_documents import (
    AirflowDocument,
    ConfirmationDocument,
    Document,
    DocumentError,
    EngineDocument,
    FailuresDocument,
    FoundDocument,
    LeaseDocument,
    NumbersDocument,
    PredictionsDocument,
)
from tipcflow.store import Store
from tipcflow.store.types import dumps, loads

RUN = a_run().id
KEY = MetricKey("v/train", "", "eval.top1")
OOM = Failure(failure_class=FailureClass.OOM_GPU)
SAID_OF_CHECKS = (
    "pass",
    "improvement",
    "insufficient_data",
    "not_run",
    "infra_failure",
    "unconfirmed",
    "regression",
    "failed",
)


@pytest.fixture
def begun(store: Store) -> Store:
    store.runs.create(a_run(), a_plan())
    return store


def test_a_document_is_kept_and_replaced(begun: Store) -> None:
    assert begun.documents.get(RUN, PredictionsDocument) is None
    kept = PredictionsDocument({"s/l": {"0.png": (0.1, math.inf, -math.inf), "\0ü": ()}})
    begun.documents.put(RUN, kept)
    begun.documents.put(RUN, LeaseDocument(fence=3, at=1.5))
    assert begun.documents.get(RUN, PredictionsDocument) == kept
    begun.documents.remove(RUN, PredictionsDocument)
    begun.documents.remove(RUN, PredictionsDocument)
    assert begun.documents.get(RUN, PredictionsDocument) is None
    begun.documents.put(RUN, PredictionsDocument({"s": {"1.png": (math.nan,)}}))
    several = begun.documents.several(RUN, (PredictionsDocument, LeaseDocument, FoundDocument))
    found = several.get(PredictionsDocument)
    assert found is not None
    assert math.isnan(found.root[PartKey("s")][PredictionKey("1.png")][0])
    assert several.get(LeaseDocument) == LeaseDocument(fence=3, at=1.5)
    assert several.get(FoundDocument) is None
    assert begun.documents.names(RUN) == ["lease", "predictions"]


def test_an_added_document_replaces_none(begun: Store) -> None:
    first, second = (AirflowDocument(dag_id="certify", run_id=name) for name in ("weekly__1", "ci__2"))
    assert [begun.documents.add(RUN, each) for each in (first, second)] == [first, first]
    assert begun.documents.get(RUN, AirflowDocument) == first


def test_a_document_needs_its_run(begun: Store) -> None:
    with pytest.raises(IntegrityError):
        begun.documents.put("unknown", LeaseDocument())


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"fence": 7}, LeaseDocument(fence=7)),
        (
            {"fence": 7, "at": 1.0, "schema_version": 2, "holder": "x"},
            LeaseDocument(fence=7, at=1, schema_version=2),
        ),
        ({"rule": 2, "numbers": {"v/train||eval.top1": 0.7}}, NumbersDocument(rule=2, numbers={KEY: 0.7})),
        (["metric|v/eval||top1"], FoundDocument((EvidenceKey("metric", "v/eval", "", "top1"),))),
        (
            {"v/train~1": {"failure_class": "oom_gpu", "later": 1}},
            FailuresDocument({AttemptKey("v/train", 1): OOM}),
        ),
    ],
)
def test_rows_of_other_versions_load(begun: Store, body: Any, expected: Document) -> None:
    store_raw(begun, RUN, type(expected), body)
    assert begun.documents.get(RUN, type(expected)) == expected


@pytest.mark.parametrize(
    ("kind", "body", "field"),
    [
        (LeaseDocument, {"fence": "three"}, "fence"),
        (LeaseDocument, [], "the document"),
        (PredictionsDocument, {"s/l": {"0.png": ["high"]}}, "s/l.0.png.0"),
        (FoundDocument, ["loss"], "0"),
        (ConfirmationDocument, {"run": "child", "keys": ["v/train"]}, "until"),
    ],
)
def test_an_invalid_document_is_named_with_run_and_field(
    begun: Store, kind: type[Document], body: Any, field: str
) -> None:
    store_raw(begun, RUN, kind, body)
    with pytest.raises(DocumentError, match=f"^run {RUN}: document '{kind.NAME}' is invalid: {field}: "):
        begun.documents.get(RUN, kind)


def test_fields_of_a_document_change_without_losing_others(begun: Store) -> None:
    begun.documents.change(RUN, ConfirmationDocument, until=0.0)
    assert begun.documents.get(RUN, ConfirmationDocument) is None, "none is made"
    requested = ConfirmationDocument(run="child", keys=("v/train",), until=5.0, run_after="2026-01-01")
    begun.documents.put(RUN, requested)
    begun.documents.change(RUN, ConfirmationDocument, until=0.0, refused="no slots")
    expected = requested.model_copy(update={"until": 0.0, "refused": "no slots"})
    assert begun.documents.get(RUN, ConfirmationDocument) == expected


def test_a_merge_replaces_entries_and_removes_those_of_an_earlier_attempt(begun: Store) -> None:
    begun.documents.merge(RUN, EngineDocument, {"s/a": {"k": "1"}, "s/b": {"k": "1"}, "t/a": {"k": "1"}})
    begun.documents.merge(RUN, EngineDocument, {"s/a": {"k": "2"}}, without=["s/a", "s/b"])
    assert begun.documents.get(RUN, EngineDocument) == EngineDocument({"s/a": {"k": "2"}, "t/a": {"k": "1"}})
    begun.documents.merge(RUN, EngineDocument, {}, without=["t/a"])
    assert begun.documents.get(RUN, EngineDocument) == EngineDocument({"s/a": {"k": "2"}})


def test_json_keeps_floats_exactly_and_takes_numpy() -> None:
    values = [0.1 + 0.2, 5e-324, 1.7976931348623157e308, -0.0]
    assert loads(dumps(values)) == values
    assert json.loads(dumps({"a": np.float32(0.5), "b": np.int64(3), "c": {"y", "x"}})) == {
        "a": 0.5,
        "b": 3,
        "c": ["x", "y"],
    }
    with pytest.raises(TypeError):
        dumps(object)


def test_node_facts_are_kept_per_node(begun: Store) -> None:
    gpus = ({"name": "Some GPU", "memory_bytes": 1 << 34}, {"name": "Some GPU", "memory_bytes": 1 << 34})
    a = some_facts("node-a", gpus=gpus, unreachable={"10.0.0.2": "timed out"}, packages={"numpy": "2.0"})
    b = some_facts("node-b")
    begun.nodes.save(RUN, b)
    begun.nodes.save(RUN, iter([a, NodeFacts(node="node-b")]))
    assert begun.nodes.facts(RUN) == [a, NodeFacts(node="node-b")]
    begun.nodes.save(RUN, [])
    assert begun.nodes.facts("unknown") == []


def test_check_results_replace_each_other_in_order(begun: Store) -> None:
    results = [
        CheckResult(
            check="b.second", status=Status.FAILED, reason="nan at 3", step="t", values={"loss": math.inf}
        ),
        CheckResult(check="a.first", status=Status.PASS, reason="", metric="ips", gating=False),
        CheckResult(check="a.first", status=Status.PASS, reason="of another node", metric="ips"),
    ]
    begun.checks.replace(RUN, [CheckResult(check="old", status=Status.PASS, reason="")])
    begun.checks.replace(RUN, results)
    assert begun.checks.results(RUN) == results
    begun.checks.replace(RUN, iter(results[:1]))
    assert begun.checks.results(RUN) == results[:1]
    begun.checks.replace(RUN, [])
    assert begun.checks.results(RUN) == []


@pytest.mark.parametrize("status", list(Status))
def test_a_check_has_a_word_of_the_table(begun: Store, status: Status) -> None:
    before = [CheckResult(check="old", status=Status.PASS, reason="")]
    begun.checks.replace(RUN, before)
    result = CheckResult(check="x", status=status, reason="")
    if status.value in SAID_OF_CHECKS:
        begun.checks.replace(RUN, [result])
        assert begun.checks.results(RUN) == [result]
    else:
        with pytest.raises(IntegrityError):
            begun.checks.replace(RUN, [result])
        assert begun.checks.results(RUN) == before

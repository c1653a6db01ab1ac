import json
import math

import numpy as np
import pytest
from sqlalchemy.exc import IntegrityError
from tests.support.stories import a_plan, a_run, some_facts

from tipcflow.domain import CheckResult, NodeFacts, Status
from tipcflow.store import Store
from tipcflow.store.types import dumps, loads

RUN = a_run().id
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
    store.create_run(a_run(), a_plan())
    return store


def test_a_document_is_kept_and_replaced(begun: Store) -> None:
    assert begun.document(RUN, "predictions") is None
    begun.put_document(RUN, "predictions", {"s/l": {"0.png": [0.1, math.inf, -math.inf], "\0\udc80ü": []}})
    begun.put_document(RUN, "reporter", "auto_log 1.2")
    assert begun.document(RUN, "predictions") == {"s/l": {"0.png": [0.1, math.inf, -math.inf], "\0\udc80ü": []}}
    begun.put_document(RUN, "predictions", None)
    assert begun.document(RUN, "predictions") is None
    begun.put_document(RUN, "nan", [math.nan])
    assert math.isnan(begun.document(RUN, "nan")[0])
    assert begun.documents(RUN) == ["nan", "predictions", "reporter"]


def test_a_document_needs_its_run(begun: Store) -> None:
    with pytest.raises(IntegrityError):
        begun.put_document("nobody", "x", 1)


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
    begun.save_node_facts(RUN, b)
    begun.save_node_facts(RUN, iter([a, NodeFacts(node="node-b")]))
    assert begun.node_facts(RUN) == [a, NodeFacts(node="node-b")]
    begun.save_node_facts(RUN, [])
    assert begun.node_facts("nobody") == []


def test_check_results_replace_each_other_in_order(begun: Store) -> None:
    results = [
        CheckResult(
            check="b.second", status=Status.FAILED, reason="nan at 3", step="t", values={"loss": math.inf}
        ),
        CheckResult(check="a.first", status=Status.PASS, reason="", metric="ips", gating=False),
        CheckResult(check="a.first", status=Status.PASS, reason="of another node", metric="ips"),
    ]
    begun.set_check_results(RUN, [CheckResult(check="old", status=Status.PASS, reason="")])
    begun.set_check_results(RUN, results)
    assert begun.check_results(RUN) == results
    begun.set_check_results(RUN, iter(results[:1]))
    assert begun.check_results(RUN) == results[:1]
    begun.set_check_results(RUN, [])
    assert begun.check_results(RUN) == []


@pytest.mark.parametrize("status", list(Status))
def test_a_check_has_a_word_of_the_table(begun: Store, status: Status) -> None:
    before = [CheckResult(check="old", status=Status.PASS, reason="")]
    begun.set_check_results(RUN, before)
    result = CheckResult(check="x", status=status, reason="")
    if status.value in SAID_OF_CHECKS:
        begun.set_check_results(RUN, [result])
        assert begun.check_results(RUN) == [result]
    else:
        with pytest.raises(IntegrityError):
            begun.set_check_results(RUN, [result])
        assert begun.check_results(RUN) == before

"""A certificate holds all findings, is equal for equal facts, and reveals every later change."""

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.expected.golden import assert_golden

from tipcflow.check import CheckContext, judge, verdict
from tipcflow.domain import Facts, Run, Status
from tipcflow.report import Basis, as_text, certificate, verify
from tipcflow.report.canonical import canonical, sha256
from tipcflow.report.certificate import links

GOLDEN = Path(__file__).parents[2] / "golden" / "report"
BASIS = ("base", "merge_base", "drop", "policy", "policy_sha256")
FILES = {"v_train/alpha/logs/main.log": "aa" * 32}


def made(build: ModuleType, **changes: object) -> dict[str, Any]:
    facts: Facts = build.facts(**changes)
    results = judge(facts, CheckContext(run=build.run()))
    status, reason = verdict(facts, results)
    run: Run = build.run(status=status, reason=reason)
    basis = Basis(base="main", merge_base="b" * 40, drop=("*/gpu_*",), policy="pr", limits={"min_history": 5})
    return certificate(facts, run, results, basis=basis, files=FILES, versions={"tipcflow": "0.1.0"})


def test_certificate_equals_the_golden_file(build: ModuleType) -> None:
    assert_golden(GOLDEN / "certificate.json", as_text(made(build)))


def test_certificate_is_valid(build: ModuleType) -> None:
    read_back = json.loads(as_text(made(build)))
    assert verify(read_back, files=FILES) == []
    assert read_back["verdict"]["counts"]["legs"] == {"pass": 2, "not_run": 1}
    assert read_back["reporter"] == "tipcflow-sample"


def test_certificate_names_the_basis_of_its_verdict(build: ModuleType) -> None:
    document = made(build)
    config = {name: document["config"].pop(name) for name in BASIS}
    assert config == {
        "base": "main",
        "merge_base": "b" * 40,
        "drop": ["*/gpu_*"],
        "policy": "pr",
        "policy_sha256": sha256({"min_history": 5}),
    }
    assert verify(document) != []
    # As an earlier version wrote it.
    document["links"] = links(document)
    document["sha256"] = sha256({name: value for name, value in document.items() if name != "sha256"})
    assert verify(document) == []


def test_the_order_of_facts_does_not_matter(build: ModuleType) -> None:
    facts = build.facts()
    shuffled = build.facts(
        records=facts.records[::-1], measurements=facts.measurements[::-1], node_facts=facts.node_facts[::-1]
    )
    results = judge(facts, CheckContext())
    run = build.run(status=Status.PASS)
    assert certificate(facts, run, results)["sha256"] == certificate(shuffled, run, results)["sha256"]


def test_the_minute_does_not_matter(build: ModuleType) -> None:
    later = tuple(
        n.model_copy(update={"disk_free_bytes": 5, "clock_skew_s": 0.5}) for n in build.facts().node_facts
    )
    assert made(build, node_facts=later)["environment"] == made(build)["environment"]


def test_nan_is_written_as_json(build: ModuleType) -> None:
    broken = [m.model_copy(update={"value": math.nan}) if m.metric == "loss" else m for m in build.measurements()]
    text = as_text(made(build, measurements=tuple(broken)))
    document = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert verify(document) == []
    assert document["verdict"]["status"] == "failed"
    assert [m["median"] for m in document["measurements"] if m["metric"] == "loss"] == ["nan"]


def lie(document: dict[str, Any]) -> None:
    document["verdict"]["status"] = "improvement"


def hide_leg(document: dict[str, Any]) -> None:
    document["legs"].pop()


def change_weights(document: dict[str, Any]) -> None:
    document["checkpoint"][0]["sha256"] = "00" * 32


def change_check(document: dict[str, Any]) -> None:
    document["checks"][0]["status"] = "failed"


@pytest.mark.parametrize(
    ("change", "section"),
    [(lie, "verdict"), (hide_leg, "legs"), (change_weights, "checkpoint"), (change_check, "checks")],
)
def test_every_change_is_found(build: ModuleType, change: Callable[[dict[str, Any]], None], section: str) -> None:
    document = copy.deepcopy(made(build))
    change(document)
    problems = verify(document)
    assert "the certificate was modified: its content does not match its hash" in problems
    assert f"section {section} was changed after the certificate was written" in problems


def test_a_verdict_that_does_not_follow(build: ModuleType) -> None:
    facts = build.facts(step_status={**build.facts().step_status, build.EVAL: Status.FAILED})
    results = judge(facts, CheckContext())
    forged = certificate(facts, build.run(status=Status.PASS, reason="all well"), results)
    assert verify(forged) == ["stored verdict pass; content evaluates to failed"]


@pytest.mark.parametrize(
    ("leg", "problems"),
    [(Status.PASS, []), (Status.FAILED, ["stored verdict infra_failure; content evaluates to failed"])],
)
def test_infra_failure_may_replace_a_green_verdict_only(
    build: ModuleType, leg: Status, problems: list[str]
) -> None:
    """Something was left on a node, or the certificate could not be signed."""
    facts = build.facts(step_status={**build.facts().step_status, build.EVAL: leg})
    run = build.run(status=Status.INFRA_FAILURE, reason="a process was left on node-a")
    assert verify(certificate(facts, run, ())) == problems


def test_files_are_compared(build: ModuleType) -> None:
    path = next(iter(FILES))
    assert verify(made(build), files={}) == [f"file {path} is missing"]
    assert verify(made(build), files={path: "bb" * 32}) == [f"file {path} was changed"]


@pytest.mark.parametrize("document", [None, [], 7, "x", {}, {"schema": "tipcflow.certificate/9"}])
def test_files_other_than_certificates_are_refused(document: object) -> None:
    (problem,) = verify(document)
    assert "not a certificate" in problem


def test_missing_and_broken_sections_are_refused(build: ModuleType) -> None:
    document = made(build)
    document.pop("legs")
    assert verify(document) == ["section legs is missing"]
    for value in (None, 7, "x", [{}], {"a": 1}):
        for section in ("steps", "legs", "checks", "verdict", "links", "files"):
            broken = {**made(build), section: value}
            assert verify(broken), f"{section} = {value!r}"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_canonical_form_survives_a_file(value: object) -> None:
    once = canonical(value)
    assert canonical(json.loads(once.decode())) == once
    assert sha256(value) == sha256(json.loads(once.decode()))

"""A change whose merge base has too few earlier runs is compared with the newest runs; the verdict states this."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.stories import open_store
from tests.support.two_nodes import NODES, TRAIN, Number, stored

from tipcflow.config.policy import Policy
from tipcflow.config.references import References
from tipcflow.config.run_documents import PolicyDocument
from tipcflow.config.suite import Suite
from tipcflow.domain import CheckResult, MetricKey, Source, Status
from tipcflow.domain.run_documents import MergeBaseDocument
from tipcflow.execute.decide.baselines import BaselineKind, draft_baselines
from tipcflow.execute.request import RequestDocument, RunRequest
from tipcflow.execute.resolve.expects import keep_expected
from tipcflow.execute.verdict import judge as judgement
from tipcflow.execute.verdict.check_context import build_check_context
from tipcflow.report import verify
from tipcflow.report.canonical import sha256
from tipcflow.store import Store

pytestmark = pytest.mark.slow

RULES = Policy(name="mine", confirm_minutes=0)
REFERENCES = References(suite="sample")
ROOT, OLD, NEW, TESTED = ("0a1b2c3d" + digit * 32 for digit in "1234")
RED = (Status.REGRESSION, Status.UNCONFIRMED)
SPEED = MetricKey(TRAIN, "", "batch_cost")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(judgement, "GATE_S", 0.0)
    with open_store(tmp_path / "t.db") as opened:
        yield opened


def judged(store: Store, run: str) -> judgement.Judged:
    result = judgement.judge_run(store, run, rules=RULES, references=REFERENCES)
    store.runs.finish(run, result.status, result.reason, store.runs.get(run).created_at + 50)
    return result


def measured(store: Store, week: int, factor: float = 1.0, *, commit: str = NEW, base: str = "") -> str:
    def slower(number: Number) -> float:
        return factor if number[4] == "batch_cost" else 1.0

    run = stored(store, week, slower, NODES, suite_commit=commit)
    if base:
        store.documents.put(run, MergeBaseDocument(commit=base, commits=(base,)))
    return run


def noted(store: Store, run: str) -> list[CheckResult]:
    return [result for result in store.checks.results(run) if result.check == "baseline.merge_base"]


def test_a_slower_change_of_a_base_without_runs_is_a_regression(store: Store) -> None:
    for week in range(6):
        assert judged(store, measured(store, week)).status is Status.PASS
    run = measured(store, 6, 4.0, commit=TESTED, base=ROOT)
    plan = store.plans.get(run)
    keep_expected(store, run, plan, Suite(name="s", folder="/s", dialects=("tipc",)), RULES)
    result = judged(store, run)
    assert result.status in RED
    sentence = "base 0a1b2c3 has 0 of 5 earlier runs: compared with the newest runs of the chain"
    assert result.parts[0] == sentence
    assert result.reason.startswith(f"{sentence}; speed.batch_cost (v/train): ")
    (note,) = noted(store, run)
    assert (note.status, note.reason) == (Status.INSUFFICIENT_DATA, sentence)
    context = build_check_context(store, store.runs.get(run), rules=RULES, references=REFERENCES)
    assert Source.HISTORY in {piece.source for piece in context.expected}


def test_an_equal_change_of_a_base_without_runs_passes_with_the_sentence(store: Store) -> None:
    for week in range(6):
        judged(store, measured(store, week))
    result = judged(store, measured(store, 6, commit=TESTED, base=ROOT))
    assert result.status is Status.PASS
    assert "compared with the newest runs of the chain; " in result.reason
    assert "not evaluated" not in result.reason


def test_change_is_compared_with_enough_runs_of_its_base(store: Store) -> None:
    for week in range(12):
        commit, factor = (OLD, 1.0) if week < 6 else (NEW, 4.0)
        run = measured(store, week, factor, commit=commit)
        judged(store, run)
        store.runs.finish(run, Status.PASS, "", store.runs.get(run).created_at + 50)
    run = measured(store, 12, 4.0, commit=TESTED, base=OLD)
    assert judged(store, run).status in RED
    assert noted(store, run) == []


def test_chain_without_enough_runs_has_no_other_comparison(store: Store) -> None:
    for week in range(4):
        judged(store, measured(store, week))
    run = measured(store, 4, 4.0, commit=TESTED, base=ROOT)
    result = judged(store, run)
    assert result.status is Status.PASS
    assert "not evaluated (no earlier runs)" in result.reason
    assert noted(store, run) == []
    context = build_check_context(store, store.runs.get(run), rules=RULES, references=REFERENCES)
    assert context.before is not None, "what was declared is compared all the same"


def test_metric_without_enough_values_of_the_base_is_compared_with_the_newest(store: Store) -> None:
    """A change of its level was accepted after the base: the earlier values belong to another history."""
    for week in range(6):
        judged(store, measured(store, week, commit=OLD))
    for week in range(6, 12):
        run = measured(store, week, 4.0)
        judged(store, run)
        if week == 6:
            about = {"who": "mia", "why": "more data", "metrics": ("batch_cost",)}
            store.baselines.accept(draft_baselines(store, store.runs.get(run), BaselineKind.ACCEPT, **about))
    run = measured(store, 12, 16.0, commit=TESTED, base=OLD)
    result = judged(store, run)
    assert result.status in RED
    sentence = (
        "base 0a1b2c3 has fewer than 5 earlier values of batch_cost: compared with the newest runs of the chain"
    )
    assert result.parts[0] == sentence
    context = build_check_context(store, store.runs.get(run), rules=RULES, references=REFERENCES)
    assert len(context.past(SPEED)) == 6


def test_certificate_names_the_bases_and_the_policy(store: Store, tmp_path: Path) -> None:
    run = measured(store, 0, commit=TESTED, base=ROOT)
    request = RunRequest(
        params="p.txt", suite="s", mode="m", cluster="c", config_dir=tmp_path, base="0a1b2c3", drop=("*/gpu_*",)
    )
    store.documents.put(run, RequestDocument(request))
    store.documents.put(run, PolicyDocument(RULES))
    judged(store, run)
    made = json.loads(judgement.write_certificate(store, run, tmp_path).read_text())
    stated = {name: made["config"][name] for name in ("base", "merge_base", "drop", "policy", "policy_sha256")}
    assert stated == {
        "base": "0a1b2c3",
        "merge_base": ROOT,
        "drop": ["*/gpu_*"],
        "policy": "mine",
        "policy_sha256": sha256(PolicyDocument(RULES).body()),
    }
    assert verify(made) == []

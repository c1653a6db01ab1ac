"""Check run and comment for every state, status and mix: golden files, conclusions, limits and escaping."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from tests.support.expected.golden import assert_golden

from tipcflow.config.repository import Repository
from tipcflow.domain import Status
from tipcflow.github.report import (
    Annotation,
    ChainFacts,
    Conclusion,
    Finding,
    PullFacts,
    State,
    batches,
    check_run,
    comment,
    conclusion,
    marker,
)
from tipcflow.github.report.words import CUT, folded, within
from tipcflow.github.trust import RunKey, Why

GOLDEN = Path(__file__).parents[3] / "golden" / "github" / "report"
HEAD = "a" * 40
KEY = RunKey("Codertocat/Hello-World", 2, HEAD, 1)
PARAMS = "test_tipc/configs/m/train_infer_python.txt"
RUN_STATUSES = (
    Status.PASS,
    Status.IMPROVEMENT,
    Status.CANCELLED,
    Status.INFRA_FAILURE,
    Status.UNCONFIRMED,
    Status.REGRESSION,
    Status.FAILED,
    Status.CONFIG_ERROR,
)
REASONS = {
    Status.PASS: "12 checks passed",
    Status.IMPROVEMENT: "train batch_cost 12 % better than the baseline",
    Status.CANCELLED: "cancelled by octocat",
    Status.INFRA_FAILURE: "node-b: disk full",
    Status.UNCONFIRMED: "speed.ips: no time left for a confirm run",
    Status.REGRESSION: "speed.batch_cost: 31 % worse than the baseline",
    Status.FAILED: "loss.finite: nan in iteration 7",
    Status.CONFIG_ERROR: "train.txt:12: unknown mode",
    None: "",
}
SLOWER = Finding(
    "batch_cost",
    "norm_train/train",
    Status.REGRESSION,
    "31 % worse than the baseline",
    now="0.131 s",
    before="0.100 s",
    noise="0.004 s",
    file=PARAMS,
    line=21,
)


def chain(status: Status | None, name: str = "toy/m/train", **more: Any) -> ChainFacts:
    values = {
        "selected": "configs/m.yaml uses configs/base.yaml",
        "reason": REASONS[status],
        "url": "https://a.example/r",
    }
    return ChainFacts(name, status=status, **{**values, **more})


def facts(state: State, *chains: ChainFacts, **more: Any) -> PullFacts:
    return PullFacts(KEY, state, chains, **more)


DONE = {"command": "tipcflow run toy/m/train --suite toy", "url": "https://a.example/certification/"}
SCENES: dict[str, PullFacts] = {
    "held": facts(State.HELD, why=Why.FORK, reason=f"code of a fork: comment `/tipc approve {HEAD}`"),
    "skipped_label": facts(State.SKIPPED, why=Why.SKIP_LABEL, reason="label tipc:skip: nothing runs"),
    "skipped_draft": facts(State.SKIPPED, why=Why.DRAFT, reason="draft: nothing runs"),
    "skipped_branch": facts(State.SKIPPED, why=Why.BRANCH, reason="base branch x is not certified"),
    "skipped_forks": facts(
        State.SKIPPED, why=Why.FORKS_OFF, reason="code of forks does not run in this repository"
    ),
    "unconcerned": facts(State.UNCONCERNED, reason="no chain uses one of the 3 changed files"),
    "queued": facts(State.QUEUED, chain(None), chain(None, "toy/n/train"), place=3, start_s=12.4 * 60),
    "running": facts(State.RUNNING, chain(Status.PASS), chain(None, "toy/n/train", step="norm_train/train")),
    "nothing_ran": facts(State.DONE, unproven=("chain toy/m/train does not run: it needs 4 nodes",), **DONE),
    **{f"one_{one.value}": facts(State.DONE, chain(one), **DONE) for one in RUN_STATUSES},
    "one_missing": facts(State.DONE, chain(None), **DONE),
    "findings": facts(
        State.DONE,
        chain(Status.REGRESSION, findings=(SLOWER,)),
        chain(Status.PASS, "toy/n/train"),
        accuracy=("top1 of m: 0.761, target 0.758 ± 0.005",),
        unproven=("leg infer/int8 of toy/m/train does not run: the chain takes more than 15.0 min",),
        **DONE,
    ),
    "mix": facts(State.DONE, *(chain(one, f"toy/{one.value}/train") for one in RUN_STATUSES), **DONE),
    "minutes": facts(
        State.DONE,
        chain(Status.PASS, predicted_s=312.0, took_s=353.0),
        chain(Status.FAILED, "toy/n/train", predicted_s=120.0),
        chain(Status.CANCELLED, "toy/o/train", took_s=30.0),
        **DONE,
    ),
    "pass_quarantined": facts(
        State.DONE,
        chain(
            Status.PASS,
            reason="quarantined: parity.onednn (v/infer cpu): quarantine 7 of kernels, until 2026-12-01 00:00 "
            "UTC: class 3 instead of 5; 11 checks passed",
            quarantined=True,
        ),
        chain(Status.PASS, "toy/n/train"),
        **DONE,
    ),
    "named_only": facts(
        State.DONE,
        chain(Status.PASS, "toy/m/train (whole_train_whole_infer)"),
        partial=True,
        mode="lite_train_lite_infer",
        **DONE,
    ),
    "pass_unproven": facts(State.DONE, chain(Status.PASS), unproven=("leg infer/int8 does not run",), **DONE),
}


def written(scene: PullFacts, repository: Repository) -> str:
    check = check_run(scene, repository)
    parts = [
        f"{check.name}: {check.status}, {check.conclusion}",
        f"title: {check.title}",
        *(f"button: {one.label} ({one.identifier}): {one.description}" for one in check.actions),
        *(
            f"annotation: {one.path}:{one.line}: {one.level}: {one.title}: {one.message}"
            for one in check.annotations
        ),
        f"--- summary\n{check.summary}",
        f"--- comment\n{comment(scene, repository)}",
    ]
    return "\n".join(parts)


@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("gate", ["required", "advisory"])
def test_report_texts_equal_golden_files(name: str, gate: str, repository: Repository) -> None:
    chosen = repository.model_copy(update={"gate": gate})
    text = written(SCENES[name], chosen)
    file = GOLDEN / f"{name}.{gate}.md"
    assert_golden(file, text)


def test_every_golden_file_has_a_scene() -> None:
    assert {file.name for file in GOLDEN.glob("*.md")} == {
        f"{name}.{gate}.md" for name in SCENES for gate in ("required", "advisory")
    }


@pytest.mark.parametrize(
    ("status", "required", "advisory"),
    [
        (Status.PASS, "success", "success"),
        (Status.IMPROVEMENT, "success", "success"),
        (Status.CANCELLED, "cancelled", "cancelled"),
        (Status.INFRA_FAILURE, "action_required", "neutral"),
        (Status.UNCONFIRMED, "action_required", "neutral"),
        (Status.CONFIG_ERROR, "action_required", "neutral"),
        (Status.REGRESSION, "failure", "failure"),
        (Status.FAILED, "failure", "failure"),
        (Status.NOT_RUN, "action_required", "neutral"),
        (Status.BLOCKED, "action_required", "neutral"),
        (Status.INSUFFICIENT_DATA, "action_required", "neutral"),
        (None, "action_required", "neutral"),
    ],
)
def test_conclusion_follows_from_status_and_gate(status: Status | None, required: str, advisory: str) -> None:
    one = facts(State.DONE, ChainFacts("c", status=status))
    assert (conclusion(one, "required"), conclusion(one, "advisory")) == (required, advisory)


def test_a_mix_is_never_better_than_its_worst_chain() -> None:
    order = list(Conclusion)
    for statuses in itertools.combinations([*Status, None], 2):
        both = facts(State.DONE, *(ChainFacts(f"c{number}", status=one) for number, one in enumerate(statuses)))
        alone = [conclusion(facts(State.DONE, ChainFacts("c", status=one)), "required") for one in statuses]
        assert order.index(conclusion(both, "required")) == max(map(order.index, alone))


def test_a_gate_never_passes_without_evidence() -> None:
    """Conclusions that GitHub counts as passed need a pass of every chain, or a change that concerns none."""
    passing = {Conclusion.SUCCESS, Conclusion.SKIPPED, Conclusion.NEUTRAL}
    for name, scene in SCENES.items():
        if scene.state in (State.QUEUED, State.RUNNING):
            continue
        good = {
            "one_pass",
            "one_improvement",
            "pass_quarantined",
            "pass_unproven",
            "unconcerned",
            "skipped_branch",
        }
        assert (conclusion(scene, "required") in passing) == (name in good), name


def test_buttons_and_titles_fit_githubs_limits(repository: Repository) -> None:
    for scene in SCENES.values():
        check = check_run(scene, repository)
        assert len(check.actions) <= 3
        for one in check.actions:
            assert len(one.label) <= 20
            assert len(one.identifier) <= 20
            assert len(one.description) <= 40


def test_long_texts_are_cut_and_annotations_come_in_batches(repository: Repository) -> None:
    many = tuple(
        chain(Status.FAILED, f"toy/{number}/train", reason="x" * 5000, findings=(SLOWER,) * 10)
        for number in range(300)
    )
    scene = facts(State.DONE, *many, **DONE)
    check = check_run(scene, repository)
    assert len(check.summary) <= 65_535
    assert check.summary.endswith("… truncated; the page of the run has the rest.\n")
    assert len(comment(scene, repository)) <= 65_535
    parts = batches(check.annotations)
    assert [len(part) for part in parts] == [50] * 60
    assert [one for part in parts for one in part] == list(check.annotations)
    assert batches([Annotation("f", 1, "failure", "", "")] * 51)[1:] == [(Annotation("f", 1, "failure", "", ""),)]
    assert batches([]) == []


def test_cut_text_closes_its_folded_part() -> None:
    lines = "\n".join(f"line {number}" for number in range(500))
    for limit in range(200, 3000, 7):
        cut = within(f"before\n\n{folded('Passed: 2 chains', lines)}\n", limit)
        assert len(cut) <= limit
        assert cut.count("<details>") == cut.count("</details>") == 1
        assert cut.endswith(CUT)


def test_texts_of_logs_cannot_mention_link_or_leave_their_cell(repository: Repository) -> None:
    evil = "@everyone | [x](http://evil) <img src=x> `code` #12\n\n# head"
    scene = facts(
        State.DONE,
        chain(Status.FAILED, reason=evil, findings=(Finding(evil, evil, Status.FAILED, evil, now=evil),)),
        unproven=(evil,),
        accuracy=(evil,),
        command=evil,
        reason=evil,
    )
    for text in (check_run(scene, repository).summary, comment(scene, repository)):
        plain = "".join(part for number, part in enumerate(text.split("`")) if number % 2 == 0)
        assert "@everyone" not in plain
        assert "[x](" not in plain
        assert "<img" not in plain
        assert "\n# head" not in text
        assert "#12" not in plain


def test_a_comment_is_written_only_with_content(repository: Repository) -> None:
    plain = SCENES["one_pass"]
    assert comment(plain, repository) == ""
    assert comment(plain, repository, existing=True).startswith(marker(repository)), "an old failure is replaced"
    assert comment(SCENES["running"], repository) == ""
    assert comment(SCENES["findings"], repository)
    assert comment(SCENES["pass_unproven"], repository)
    assert comment(SCENES["held"], repository)
    never, always = (repository.model_copy(update={"comment": word}) for word in ("never", "always"))
    assert comment(SCENES["findings"], never) == ""
    assert comment(plain, always)
    push = PullFacts(RunKey(KEY.repository, 0, HEAD, 1), State.DONE, (chain(Status.FAILED),))
    assert comment(push, always) == "", "a push has no pull request"

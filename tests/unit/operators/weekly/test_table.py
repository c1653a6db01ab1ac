from pathlib import Path

from tests.support.stories import T0, a_run

from tipcflow.domain import CheckResult, Run, Status
from tipcflow_operators.weekly.table import Row, accuracies, counted, markdown, values_of

GOLDEN = Path(__file__).parents[3] / "golden" / "operators" / "weekly.md"


def judged(value: float | None, status: Status = Status.PASS, **fields: object) -> CheckResult:
    values = {"target": 71.0, "tolerance": 0.5, "unit": "%", "because": "paper"}
    values |= {} if value is None else {"value": value}
    known = {"check": "accuracy.final", "status": status, "reason": "", "step": "v/eval", "metric": "top1_acc"}
    return CheckResult.model_validate(known | {"values": values} | fields)


def ended(chain: str, status: Status | None, reason: str = "", seconds: float = 8000.0) -> Run:
    run_id = f"20261121t200000-{chain.split('/')[1]}-0a1b2c3d"
    return a_run(run_id, chain=chain, status=status, reason=reason, ended_at=status and T0 + seconds)


def test_the_summary_that_a_user_reads() -> None:
    dropped = judged(68.25, Status.FAILED)
    rows = [
        Row("clas/good/train", ended("clas/good/train", Status.PASS), accuracies([judged(71.3)], {})),
        Row("clas/lost/train", ended("clas/lost/train", Status.FAILED, "accuracy.final: too | low\nby far"),
            accuracies([dropped], {("v/eval", "top1_acc"): 71.25})),
        Row("clas/broken/train", ended("clas/broken/train", Status.INFRA_FAILURE, "node b: <down>", 65)),
        Row("clas/odd/train", ended("clas/odd/train", None)),
        Row("ocr/never/train"),
        Row("ocr/quick/train", ended("ocr/quick/train", Status.PASS, "", 59)),
    ]  # fmt: skip
    assert [row.chain for row in rows if row.red] == [
        "clas/lost/train",
        "clas/broken/train",
        "clas/odd/train",
        "ocr/never/train",
    ]
    assert counted(rows) == "1 no status, 1 not started, 1 failed, 1 infra_failure, 2 pass"
    names = ("ocr/a/serving_infer", "ocr/b/serving_infer")
    mode = dict.fromkeys(names, "this kind of file does not support mode m")
    not_run = {**mode, "torch/mnist/train": "cluster local has no torch"}
    assert markdown("weekly manual__x", rows, not_run) == GOLDEN.read_text(encoding="utf-8")


def test_an_unconfirmed_run_is_red_unless_the_policy_sets_neutral() -> None:
    run = ended("clas/good/train", Status.UNCONFIRMED, "slower")
    assert Row("clas/good/train", run).red
    assert not Row("clas/good/train", run, neutral=True).red
    assert Row("clas/good/train", run, neutral=True).word == "unconfirmed"
    assert Row("clas/bad/train", ended("clas/bad/train", Status.FAILED), neutral=True).red


def test_accuracy_is_compared_with_target_and_last_run() -> None:
    before = values_of([judged(71.0), judged(0.5, metric="top5_acc"), judged(None, metric="other")])
    assert before == {("v/eval", "top1_acc"): 71.0, ("v/eval", "top5_acc"): 0.5}
    now = [judged(71.25), judged(None, Status.INSUFFICIENT_DATA), judged(0.9, check="loss.falling")]
    assert accuracies(now, before) == ("top1_acc 71.25 % (target 71 ± 0.5; previous 71, +0.25)",)
    assert accuracies([judged(70.75, Status.FAILED)], before) == (
        "top1_acc 70.75 % (target 71 ± 0.5; previous 71, -0.25) failed",
    )
    assert accuracies([judged(71.25, step="other/eval")], before) == ("top1_acc 71.25 % (target 71 ± 0.5)",)


def test_accuracy_against_its_history_is_reported_if_changed() -> None:
    def beside(value: float, status: Status, **values: object) -> CheckResult:
        return judged(value, status, check="accuracy.history", values={"value": value, "unit": "%", **values})

    assert accuracies([judged(71.25), beside(71.25, Status.PASS, baseline=71.1)], {}) == (
        "top1_acc 71.25 % (target 71 ± 0.5)",
    )
    assert accuracies([judged(70.75), beside(70.75, Status.REGRESSION, baseline=72.0)], {}) == (
        "top1_acc 70.75 % (target 71 ± 0.5)",
        "top1_acc 70.75 % (baseline 72) regression",
    )
    assert accuracies([beside(70.75, Status.PASS, baseline=70.5)], {}) == ("top1_acc 70.75 % (baseline 70.5)",)
    assert accuracies([beside(70.75, Status.INSUFFICIENT_DATA)], {}) == ("top1_acc 70.75 % insufficient_data",)

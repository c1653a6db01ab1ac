from pathlib import Path

from tests.support.stories import T0, a_run

from tipcflow.domain import Run, Status
from tipcflow_operators.weekly.report import Earlier, Selector, as_html, as_markdown, as_slack, headline, sections
from tipcflow_operators.weekly.table import Row

GOLDEN = Path(__file__).parents[3] / "golden" / "operators"


def ended(chain: str, status: Status | None, reason: str = "") -> Run:
    return a_run(f"r-{chain.replace('/', '-')}", chain=chain, status=status, reason=reason, ended_at=T0 + 60)


ROWS = [
    Row("clas/good/train", ended("clas/good/train", Status.PASS), ("top1_acc 71.3 % (target 71 ± 0.5)",)),
    Row("clas/lost/train", ended("clas/lost/train", Status.REGRESSION, "speed: 12 % slower | <b>\n@all")),
    Row("clas/old/train", ended("clas/old/train", Status.FAILED, "loss is nan")),
    Row("clas/away/train", ended("clas/away/train", Status.INFRA_FAILURE, "node b is unreachable")),
    Row("clas/odd/train", ended("clas/odd/train", None)),
    Row("ocr/never/train"),
]
NOT_RUN = {
    "ocr/a/serving": "this kind of file does not support mode whole_train_whole_infer",
    "torch/mnist/train": "cluster local has no torch",
}
EARLIER = {
    "clas/good/train": Earlier(Status.PASS, {"v/eval top1_acc": (71.0, 71.25, 71.3)}),
    "clas/lost/train": Earlier(Status.PASS),
    "clas/old/train": Earlier(Status.REGRESSION),
}
SELECTOR = Selector(
    "false-green rate: 50 %: the selection would have missed 1 of 2 regressions of full runs in the last 182 days",
    (("clas/lost/train", "owner/models", "missed: a pull request would not have run it"),),
)
NOTHING = Selector("false-green rate: no regression of a full run was measured in the last 182 days")


def test_the_report_that_a_user_reads() -> None:
    parts = sections(ROWS, EARLIER, NOT_RUN, SELECTOR)
    assert as_markdown(parts) == (GOLDEN / "weekly_report.md").read_text(encoding="utf-8")
    title = headline("weekly manual__x", ROWS, NOT_RUN)
    assert as_html(title, parts) == (GOLDEN / "weekly_report.html").read_text(encoding="utf-8")
    assert "<b>" not in as_html(title, parts)


def test_slack_mentions_no_user_and_has_a_limit() -> None:
    text = as_slack("weekly <!channel>", sections(ROWS, EARLIER, {}, NOTHING))
    assert "<" not in text
    assert "• clas/lost/train: regression: speed: 12 % slower | &lt;b&gt; @all" in text
    many = [Row(f"clas/{number}/train") for number in range(500)]
    assert len(as_slack("weekly", sections(many, {}, {}, NOTHING))) <= 3000


def test_a_chain_that_failed_for_the_first_time_is_new() -> None:
    parts = sections([ROWS[2]], {}, {}, NOTHING)
    assert [row[0] for row in parts[0].rows] == ["clas/old/train"]
    assert parts[1].rows == ()


def test_without_a_measured_regression_the_rate_is_a_line() -> None:
    parts = sections([], {}, {}, NOTHING)
    assert as_markdown(parts).endswith(f"### False-green rate of the selection\n\n{NOTHING.line}\n")
    assert f"<p>{NOTHING.line}</p>" in as_html("x", parts)

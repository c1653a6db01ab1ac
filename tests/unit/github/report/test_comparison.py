"""The comment about an A/B comparison of a pull request."""

from pathlib import Path

import pytest
from tests.support.expected.golden import assert_golden

from tipcflow.config.repository import Repository
from tipcflow.domain import Status
from tipcflow.github.report import ComparedChain, ComparedMetric, ComparisonFacts, comparison_text

GOLDEN = Path(__file__).parents[3] / "golden" / "github" / "comparison"
REPOSITORY = Repository(name="o/r", connection="app", suite="toy", cluster="local")


def facts(*chains: ComparedChain, problem: str = "", ended: bool = True) -> ComparisonFacts:
    return ComparisonFacts("b" * 40, "main", "a" * 40, "mia", chains, (), problem, ended)


def metric(outcome: str, high: float = 1.15) -> ComparedMetric:
    return ComparedMetric("v/train", "batch_cost", 1.1, 1.05, high, outcome)


def test_result_of_two_chains_has_the_golden_text() -> None:
    worse = ComparedChain(
        "toy/a/train", Status.REGRESSION, "worse: 1 of 1 metrics (4 pairs, 1:33)", (metric("worse"),)
    )
    open_end = ComparedChain(
        "toy/b/train", Status.UNCONFIRMED, "undecided: 1 of 1 metrics", (metric("undecided", float("inf")),)
    )
    assert_golden(GOLDEN / "comment.md", comparison_text(facts(worse, open_end), REPOSITORY))


@pytest.mark.parametrize(
    ("made", "head"),
    [
        (facts(ended=False), "waiting"),
        (facts(ComparedChain("c"), ComparedChain("d", Status.PASS), ended=False), "running, 1 of 2 chains ended"),
        (facts(ComparedChain("c", Status.PASS)), "better or the same"),
        (facts(ComparedChain("c", Status.FAILED), ComparedChain("d", Status.REGRESSION)), "failed"),
        (facts(ComparedChain("c", Status.CANCELLED)), "cancelled"),
        (facts(problem="No chain matches."), "not done"),
    ],
)
def test_head_names_the_worst_result(made: ComparisonFacts, head: str) -> None:
    assert comparison_text(made, REPOSITORY).startswith(f"### tipcflow: A/B comparison {head}\n")


def test_hostile_text_stays_in_its_cell() -> None:
    bad = "<img src=x> @everyone | [x](http://evil) #12 `code`\n\n# head"
    chain = ComparedChain(bad, Status.FAILED, bad, (ComparedMetric(bad, bad, 1.0, 0.9, 1.1, bad),))
    made = ComparisonFacts("b" * 40, bad, "", bad, (chain,), (bad,), bad, ended=True)
    text = comparison_text(made, REPOSITORY)
    for part in ("<img", "@everyone", "[x](http", " #12", "\n# head"):
        assert part not in text

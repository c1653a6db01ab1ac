"""The reference pages name everything that there is."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
from pydantic import BaseModel

from tipcflow.check import CheckContext, judge
from tipcflow.check.judge import CHECKS as CHECKS_ASKED
from tipcflow.check.judge import Check
from tipcflow.config.policy import (
    AccuracyRule,
    Floors,
    GoldenRule,
    LossRule,
    MetricRule,
    NodeRule,
    Override,
    ParityRule,
    Policy,
    QuarantineRule,
)
from tipcflow.config.references import Reference
from tipcflow.domain.numbers.metrics import METRICS
from tipcflow.parse import FORMATS

DOCS = Path(__file__).parents[3] / "docs" / "reference"
CHECKS = (DOCS / "checks.md").read_text()
METRICS_PAGE = (DOCS / "metrics.md").read_text()


@pytest.mark.parametrize("check", CHECKS_ASKED, ids=lambda check: check.__name__)
def test_every_check_is_one_question(check: Check) -> None:
    """The module's first line is the question that the page points to."""
    first = str(sys.modules[check.__module__].__doc__).partition("\n")[0]
    assert first.endswith("?"), first
    assert first in CHECKS, "and stands there"


def test_every_check_is_documented(build: ModuleType) -> None:
    for result in judge(build.facts(), CheckContext()):
        family = result.check.split(".")[0]
        assert f"`{result.check}`" in CHECKS or f"`{family}.*`" in CHECKS, result.check


@pytest.mark.parametrize(
    "model",
    [
        Policy,
        Floors,
        MetricRule,
        ParityRule,
        LossRule,
        AccuracyRule,
        NodeRule,
        GoldenRule,
        QuarantineRule,
        Override,
        Reference,
    ],
)
def test_every_setting_is_documented(model: type[BaseModel]) -> None:
    for name in set(model.model_fields) - {"schema_version", "name", "description"}:
        assert name in CHECKS, name


def test_every_metric_and_format_is_documented() -> None:
    for name in METRICS:
        assert f"`{name}`" in METRICS_PAGE, name
    for name in FORMATS:
        assert f"`{name}`" in METRICS_PAGE, name

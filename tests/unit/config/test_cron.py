from pathlib import Path

import pytest

from tipcflow.config.cron import checked_cron
from tipcflow.config.settings import WEEKLY_CRON, settings
from tipcflow.domain import ConfigError


@pytest.mark.parametrize(
    "text",
    [WEEKLY_CRON, "* * * * *", "*/5 0-23/2 1,15 jan-MAR sun", "0 0 31 12 7", "0 20 * * mon-fri,SAT"],
)
def test_what_cron_takes(text: str) -> None:
    assert checked_cron(f"  {text.replace(' ', '   ')} ", key="K") == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0 20 * *", "has 4 fields"),
        ("0 0 20 * * 6", "has 6 fields"),
        ("@weekly", "has 1 fields"),
        ("60 20 * * 6", "'60' is no minute"),
        ("0 24 * * 6", "'24' is no hour"),
        ("0 20 0 * 6", "'0' is no day of the month"),
        ("0 20 * 13 6", "'13' is no month"),
        ("0 20 * * 8", "'8' is no day of the week"),
        ("0 20 * * satur", "'satur' is no day of the week"),
        ("0 5-3 * * 6", "'5-3' is no hour"),
        ("*/0 20 * * 6", "'[*]/0' is no minute"),
        ("*/60 20 * * 6", "'[*]/60' is no minute"),
        ("30/5 20 * * 6", "'30/5' is no minute"),
        ("*-5 20 * * 6", "'[*]-5' is no minute"),
        ("0, 20 * * 6", "'' is no minute"),
        ("٣ 20 * * 6", "is no minute"),
        ("-1 20 * * 6", "'-1' is no minute"),
    ],
)
def test_what_it_does_not_take_is_named(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"KEY: is no cron expression: .*{why}.*; expected minute, hour"):
        checked_cron(text, key="KEY")


def test_the_setting() -> None:
    assert settings({}).weekly_cron == settings({"TIPCFLOW_WEEKLY_CRON": ""}).weekly_cron == "0 20 * * 6"
    assert settings({"TIPCFLOW_WEEKLY_CRON": "30  2 * *  1"}).weekly_cron == "30 2 * * 1"
    with pytest.raises(ConfigError, match=r"TIPCFLOW_WEEKLY_CRON: is no cron expression.*found 'sometimes'"):
        settings({"TIPCFLOW_WEEKLY_CRON": "sometimes"})


def test_the_docs_say_the_default() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "configuration.md"
    row = next(line for line in page.read_text().splitlines() if line.startswith("| `TIPCFLOW_WEEKLY_CRON`"))
    assert f"| `{WEEKLY_CRON}`: Saturday 20:00 |" in row

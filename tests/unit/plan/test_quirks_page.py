"""docs/reference/quirks.md agrees with the code."""

from pathlib import Path

from tipcflow.plan import quirks_markdown

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "quirks.md"


def test_the_page_is_made_from_the_quirks() -> None:
    assert PAGE.read_text(encoding="utf-8") == quirks_markdown()

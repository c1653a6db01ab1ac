from tipcflow.report.text.markdown_text import cell, markdown_cell, raw_table


def test_code_stays_code_in_a_cell_of_trusted_markdown() -> None:
    assert markdown_cell("`a|b` and [c](d)") == "`a\\|b` and [c](d)"
    assert cell("`a|b` @c") == "'a\\|b' &#64;c"
    assert raw_table(("rule",), [(markdown_cell("a|b"),)]).splitlines() == ["| rule |", "| --- |", "| a\\|b |"]

"""Untrusted text in Markdown, rendered: GitHub looks for mentions and links in the rendered text."""

import re
from html import unescape

import pytest
from markdown_it import MarkdownIt

from tipcflow.github.report.words import cell as comment_cell
from tipcflow.report.text.markdown_text import cell, markdown_cell, raw_table

# Invisible, and no part of a user's name, a number or an address.
BREAK = "\u200b"


def rendered(text: str) -> str:
    """HTML of the cell of a table."""
    html = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(raw_table(("reason",), [(text,)]))
    (inner,) = re.findall(r"<td>(.*?)</td>", html, re.DOTALL)
    return inner


def test_code_stays_code_in_a_cell_of_trusted_markdown() -> None:
    assert markdown_cell("`a|b` and [c](d)") == "`a\\|b` and [c](d)"
    assert cell("`a|b` @c") == "'a\\|b' @&#8203;c"
    assert raw_table(("rule",), [(markdown_cell("a|b"),)]).splitlines() == ["| rule |", "| --- |", "| a\\|b |"]


@pytest.mark.parametrize(
    "text",
    [
        r"RuntimeError: \[see log\](https://evil.example/login)",
        "[x](https://evil.example) ![y](https://evil.example/p.png)",
        r"\\[y\\](https://evil.example) \<img src=x>",
        "a \\| b | c \\",
        "**bold** *x* _y_ __init__ ~~z~~ weight_decay manual__x _",
        "<b>&lt;i&gt; &commat;team &num;12 &#64;x &amp;",
        "ping @org/team, user@host, @paddle.jit; #12 GH-12 org/repo#5",
        "see https://evil.example/ and WWW.evil.example, ftp://x",
    ],
)
def test_untrusted_text_is_shown_as_written_and_links_nothing(text: str) -> None:
    for escaped in (cell(text), comment_cell(text)):
        html = rendered(escaped)
        assert "<" not in html, html
        shown = unescape(html)
        assert shown.replace(BREAK, "") == text
        for pattern in (r"@\w", r"#\d", r"GH-\d", r"://", r"www\."):
            assert not re.search(pattern, shown, re.IGNORECASE), shown

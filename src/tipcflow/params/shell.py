"""How a shell acts on the text of a value, because every command is built as text and evaluated by bash."""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Act:
    """One effect of the shell on a value.

    Attributes:
        what: the characters.
        does: the effect, as a clause.
        breaks: whether the command is cut, broken or runs something else; otherwise a word is only replaced.
    """

    what: str
    does: str
    breaks: bool


_ESCAPED = re.compile(r"\\.")
_SINGLE = re.compile(r"'[^']*'")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
# No rule matches a text without one of these characters, and most slots have none.
_ACTIVE = re.compile(r"[;&`$<>()\"'#~\\*?{]")
# (text outside all quotes | outside single quotes) pattern, characters, effect, whether it breaks the command
_RULES = (
    ("bare", re.compile(r"[;&]"), "; or &", "the command ends there and another one starts", True),
    ("live", re.compile(r"`|\$\("), "` or $(", "the shell runs the text as a command", True),
    ("bare", re.compile(r"[<>]"), "< or >", "the shell interprets it as a redirection", True),
    ("bare", re.compile(r"[()]"), "( or )", "the command cannot be parsed", True),
    ("bare", re.compile(r"[\"']"), "an unbalanced quote", "the command cannot be parsed", True),
    (
        "bare",
        re.compile(r"(?:^|\s)#"),
        "#",
        "all later arguments become a comment",
        True,
    ),
    ("live", re.compile(r"\$(?=[A-Za-z_{0-9?$@!#*-])(?!\()"), "$", "the shell expands it", False),
    ("bare", re.compile(r"(?:^|[\s=])~"), "~", "the shell replaces it by a home folder", False),
    ("raw", re.compile(r"\\"), "a backslash", "the shell removes it", False),
    ("bare", re.compile(r"[*?]"), "* or ?", "it is replaced by matching files", False),
    (
        "bare",
        re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}"),
        "{ and }",
        "the shell splits it into several words",
        False,
    ),
)


def shell_acts(text: str) -> list[Act]:
    """Return the effects of a shell on a text that becomes part of a command; quotes protect as in bash."""
    if not _ACTIVE.search(text):
        return []
    raw = _QUOTED.sub("", text)
    plain = _ESCAPED.sub("", text)
    views = {"raw": raw, "bare": _QUOTED.sub("", plain), "live": _SINGLE.sub("", plain)}
    return [Act(what, does, breaks) for view, pattern, what, does, breaks in _RULES if pattern.search(views[view])]

"""How a shell acts on the text of a value, because every command is built as text and evaluated by bash."""

import re
from dataclasses import dataclass
from enum import Enum, auto


class ShellAct(Enum):
    """What the shell does with characters of a value."""

    SEPARATE = auto()
    SUBSTITUTE = auto()
    REDIRECT = auto()
    GROUP = auto()
    QUOTE = auto()
    COMMENT = auto()
    EXPAND_VARIABLE = auto()
    EXPAND_HOME = auto()
    ESCAPE = auto()
    MATCH_FILES = auto()
    EXPAND_BRACES = auto()


@dataclass(frozen=True)
class Act:
    """One effect of the shell on a value.

    Attributes:
        kind: the effect.
        what: the characters.
        does: the effect, as a clause.
        breaks: whether the command is cut, broken or runs something else; otherwise a word is only replaced.
    """

    kind: ShellAct
    what: str
    does: str
    breaks: bool


_ESCAPED = re.compile(r"\\.")
_SINGLE = re.compile(r"'[^']*'")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
# No rule matches a text without one of these characters, and most slots have none.
_ACTIVE = re.compile(r"[;&`$<>()\"'#~\\*?{]")
# Effect, view (text outside all quotes | outside single quotes), pattern, characters, effect as text, whether it
# breaks the command
_RULES = (
    (
        ShellAct.SEPARATE,
        "bare",
        re.compile(r"[;&]"),
        "; or &",
        "the command ends there and another one starts",
        True,
    ),
    (ShellAct.SUBSTITUTE, "live", re.compile(r"`|\$\("), "` or $(", "the shell runs the text as a command", True),
    (ShellAct.REDIRECT, "bare", re.compile(r"[<>]"), "< or >", "the shell interprets it as a redirection", True),
    (ShellAct.GROUP, "bare", re.compile(r"[()]"), "( or )", "the command cannot be parsed", True),
    (ShellAct.QUOTE, "bare", re.compile(r"[\"']"), "an unbalanced quote", "the command cannot be parsed", True),
    (
        ShellAct.COMMENT,
        "bare",
        re.compile(r"(?:^|\s)#"),
        "#",
        "all later arguments become a comment",
        True,
    ),
    (
        ShellAct.EXPAND_VARIABLE,
        "live",
        re.compile(r"\$(?=[A-Za-z_{0-9?$@!#*-])(?!\()"),
        "$",
        "the shell expands it",
        False,
    ),
    (
        ShellAct.EXPAND_HOME,
        "bare",
        re.compile(r"(?:^|[\s=])~"),
        "~",
        "the shell replaces it by a home folder",
        False,
    ),
    (ShellAct.ESCAPE, "raw", re.compile(r"\\"), "a backslash", "the shell removes it", False),
    (ShellAct.MATCH_FILES, "bare", re.compile(r"[*?]"), "* or ?", "it is replaced by matching files", False),
    (
        ShellAct.EXPAND_BRACES,
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
    return [
        Act(kind, what, does, breaks)
        for kind, view, pattern, what, does, breaks in _RULES
        if pattern.search(views[view])
    ]

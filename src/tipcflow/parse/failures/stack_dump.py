"""Lines of stacks in a log: faulthandler writes them when a process crashes or when the runner requests them."""

import re

# CPython 3.7 to 3.14; frames differ from those of a traceback by the missing comma after the line number.
_STACK = re.compile(
    r"(?:Current t|T)hread (?:0x[0-9a-f]+|\S+) .*\(most recent call first\):$|Stack \(most recent call first\):$|"
    r"Current thread's C stack trace|\s+Binary file \"|\s+File \".*\", line (?:\d+|\?\?\?) in |  \.\.\.$|"
    r"  <(?:no Python frame|truncated rest of calls|cannot get C stack|invalid frame|tstate is freed)|"
    r"  Garbage-collecting$|Extension modules: "
)


def without_stacks(lines: list[str]) -> list[str]:
    """Return the lines that are not part of faulthandler's stacks."""
    return [line for line in lines if not _STACK.match(line)]

"""Globs of paths: `*` and `?` stay within a folder, `**` matches any number of folders."""

import re
from collections.abc import Iterable
from functools import lru_cache


def matches(path: str, globs: Iterable[str]) -> str:
    """The first glob that matches the whole path, '' if none does."""
    return next((glob for glob in globs if _compiled(glob).fullmatch(path)), "")


@lru_cache(maxsize=1024)
def _compiled(glob: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", glob.removeprefix("./"))
    words = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(words.get(part) or re.escape(part) for part in parts), re.DOTALL)

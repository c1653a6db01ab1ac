"""Masks secrets in a text, and in values of domain types."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator

from tipcflow.domain.masking.rules import MASK, RULES, Rule

# Colors and other escapes of a terminal are invisible. Titles and links (OSC) may contain secrets: they are text.
_ESCAPE = re.compile(r"(\x1b(?:\[[0-?]*[ -/]*[@-~]|[ -/]*[0-Z^-~]))")

# Text without these words matches no rule. Words that contain another one are not needed.
_ALL = {word for rule in RULES for word in rule.words}
_WORDS = tuple(word for word in sorted(_ALL) if not any(other in word for other in _ALL - {word}))
# Place in the visible text, and an escape before it.
_Escapes = list[tuple[int, str]]


def mask(text: str) -> str:
    """Return the text with every recognized password, token, signature and key replaced by `***`.

    Recognized are values by their names (`password=…`, `X-Amz-Signature=…`, `Authorization: …`), logins in URLs
    and of curl and netrc, forms of common tokens, private keys, and a launcher's dump of its environment
    (`env {…}`); also with colors of a terminal, in JSON within JSON, and percent-encoded. Numbers and paths are
    unchanged.

    Not recognized are:

    - a secret with neither a known name nor a known form; `token` with a value that has fewer than 8 characters,
      no letter or no digit; in a URL, a login of fewer than 16 characters without a password, and a password that
      begins like a port (`12/x`);
    - a value that no `=`, `:` or `=>` separates from its name (a column of a table, `('password', 'x')`,
      `PASSWORD x`), except for options (`--password x`) and netrc; other short options than curl's `-u` and
      `-p` of sshpass;
    - of a value without quotes, what follows a space, unless both are all of a line; of every value, what is on
      other lines;
    - names or secrets in other encodings (Base64) or with other invisible characters.
    """
    plain = visible(text)
    rules = candidates(plain)
    if not rules:
        return text
    if len(plain) != len(text):
        return _mask_colored(text, rules)
    for rule in rules:
        text = rule.pattern.sub(rule.shown, text)
    return text


def visible(text: str) -> str:
    """Return the text without escapes of a terminal."""
    return _ESCAPE.sub("", text) if "\x1b" in text else text


def candidates(text: str) -> list[Rule]:
    """Return the rules that may match. Most text has none: searching words is much faster than an expression."""
    lowered = text.lower()
    if not any(map(lowered.__contains__, _WORDS)):
        return []
    return [rule for rule in RULES if any(word in lowered for word in rule.words)]


def _mask_colored(text: str, rules: list[Rule]) -> str:
    """Mask the visible text. Escapes stay where they are, except for those within a secret."""
    # `split` keeps the escapes: text, escape, text, escape, …, text
    parts = _ESCAPE.split(text)
    escapes: _Escapes = []
    place = 0
    for shown, escape in zip(parts[::2], parts[1::2], strict=False):
        place += len(shown)
        escapes.append((place, escape))
    plain = "".join(parts[::2])
    for rule in rules:
        plain, escapes = _apply(rule, plain, escapes)
    pieces, place = [], 0
    for at, escape in escapes:
        pieces += [plain[place:at], escape]
        place = at
    return "".join([*pieces, plain[place:]])


def _apply(rule: Rule, text: str, escapes: _Escapes) -> tuple[str, _Escapes]:
    """Return the text after a rule, and the escapes with their new places."""
    pieces: list[str] = []
    kept: _Escapes = []
    done = moved = number = 0
    for match in rule.pattern.finditer(text):
        old, shown = match[0], match.expand(rule.shown) if isinstance(rule.shown, str) else rule.shown(match)
        before = _common(old, shown)
        after = _common(old[before:][::-1], shown[before:][::-1])
        start, end, new = match.start() + before, match.end() - after, shown[before : len(shown) - after]
        while number < len(escapes) and escapes[number][0] < end:
            place, escape = escapes[number]
            if place <= start:
                kept.append((place + moved, escape))
            number += 1
        pieces += [text[done:start], new]
        moved += len(new) - (end - start)
        done = end
    kept += [(place + moved, escape) for place, escape in escapes[number:]]
    return "".join([*pieces, text[done:]]), kept


def _common(old: str, new: str) -> int:
    """Return the length of the common beginning."""
    pairs = enumerate(zip(old, new, strict=False))
    return next((place for place, (before, after) in pairs if before != after), min(len(old), len(new)))


def mask_values(value: Any, name: str = "") -> Any:
    """Return a JSON value with secrets in its texts masked.

    Args:
        value: text, number, list or mapping.
        name: name of the value: a text that is named `password` is a secret of any form.
    """
    if not value:
        return value
    if isinstance(value, str):
        begin = f"{name}: " if name else ""
        shown = mask(begin + value)
        return shown.removeprefix(begin) if shown.startswith(begin) else MASK
    if isinstance(value, Mapping):
        return {key: mask_values(entry, str(key)) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(mask_values(entry, name) for entry in value)
    return value


def _mask_each(texts: dict[str, str]) -> dict[str, str]:
    # Once for all: a list of packages has hundreds.
    if not candidates("\n".join(texts.values())):
        return texts
    return {name: mask(text) for name, text in texts.items()}


# Text of any origin in a domain type.
Masked = Annotated[str, AfterValidator(mask)]
# Name -> text of any origin.
MaskedTexts = Annotated[dict[str, str], AfterValidator(mask_values)]
# Key that is not the name of a secret -> text of any origin.
MaskedByKey = Annotated[dict[str, str], AfterValidator(_mask_each)]
# JSON value with text of any origin.
MaskedValues = Annotated[dict[str, Any], AfterValidator(mask_values)]

"""Masking of secrets in text from logs, errors and URLs, before the text is stored, sent or shown.

Log files are stored unmasked, because the certificate contains their hashes, and masked when they are read.
"""

import re
from typing import Annotated

from pydantic import AfterValidator

MASK = "***"
# A launcher's dump of the whole environment: the line is not related to the failure.
ENVIRONMENT = "{…}"
ENVIRONMENT_LINE = re.compile(r"^[ \t]*env \{")

# Prerequisite of every rule: most text has no match and is returned unchanged.
_HINT = re.compile(
    r"(?i)pass|pwd|secret|token|credential|api[_-]?key|access[_-]?key|account[_-]?key|signature|[?&]sig|[?&]key="
    r"|bearer|authorization|cookie|private[ _-]key|://|\benv \{"
    r"|gh[pousr]_|github_pat_|glpat-|hf_|xox|eyj|sk-|aiza|akia|asia"
)
_VALUE = r"""(?:"(?:[^"\\\n]|\\.){0,4096}"|'(?:[^'\\\n]|\\.){0,4096}'|[^\s,;&"'(){}\[\]<>]+)"""
# A message about a setting is not its value: `PASSWORD: is not set`.
_SEPARATOR = r"""(?:\\?["'])?\s{0,4}(?::=|=>|[=:])\s{0,4}(?!is (?:not set|missing|empty)\b)"""
_WORD = r"(?<![A-Za-z0-9_.-])[A-Za-z0-9_.-]{0,60}?"

_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?m)^([ \t]*env )\{.*$"), rf"\1{ENVIRONMENT}"),
    (
        re.compile(
            r"(?s)-----BEGIN ([A-Z ]{0,30})PRIVATE KEY-----(?! \*\*\*)"
            r".*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)"
        ),
        rf"-----BEGIN \1PRIVATE KEY----- {MASK}",
    ),
    # https://user:password@host, https://token@host; `git@host` and other short names are not secrets.
    (re.compile(r"(://[^\s/:@]{0,256}):[^\s/@]{1,1024}@"), rf"\1:{MASK}@"),
    (re.compile(r"(://)[^\s/:@]{16,1024}@"), rf"\1{MASK}@"),
    (
        re.compile(
            r"(?i)([?&](?:x-(?:amz|goog|oss|cos|obs)-(?:signature|credential|security-token)|signature|sign|sig|auth"
            r"|(?:[a-z]{1,20}[_-])?token|key|api[_-]?key|[a-z_-]{0,20}(?:access|secret|account)[_-]?key(?:[_-]?id)?"
            r"|password|passwd|pwd|secret)=)[^\s&#\"'<>]+"
        ),
        rf"\1{MASK}",
    ),
    (
        re.compile(
            r"(?i)((?:proxy-)?authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?)(?:(?:bearer|basic|token|digest)\s+)?[^\s\"',}]+"
        ),
        rf"\1{MASK}",
    ),
    (re.compile(r"(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}"), rf"\1{MASK}"),
    (re.compile(r"(?i)((?:set-)?cookie[\"']?\s{0,4}:\s{0,4}).+"), rf"\1{MASK}"),
    (
        re.compile(
            rf"(?i)({_WORD}(?:password|passwd|passphrase|pwd|secret|credentials?|api[_-]?key|secret[_-]?key"
            rf"|access[_-]?key(?:[_-]?id)?|account[_-]?key|private[_-]?key)(?:[_-][A-Za-z0-9_-]{{1,30}})?{_SEPARATOR}){_VALUE}"
        ),
        rf"\1{MASK}",
    ),
    # `token` is also a term of language models: a value with a digit is a secret, `pad_token=<pad>` is not.
    (
        re.compile(
            rf"(?i)({_WORD}(?:auth|access|refresh|id|session|security|hf|github|gitlab|api|bot|personal|deploy)[_-]?token{_SEPARATOR}){_VALUE}"
        ),
        rf"\1{MASK}",
    ),
    (
        re.compile(
            r"""(?i)((?<![A-Za-z0-9.-])(?:[A-Za-z0-9]{1,20}_){0,4}token(?:\\?["'])?\s{0,4}[=:]\s{0,4}["']?)"""
            r"(?=[A-Za-z._~+/=-]{0,200}[0-9])(?=[0-9]{0,200}[A-Za-z])[A-Za-z0-9._~+/=-]{8,}"
        ),
        rf"\1{MASK}",
    ),
    (
        re.compile(
            r"(?i)(--[a-z0-9-]{0,30}(?:password|passwd|secret|token|api-key|access-key)(?:\s{1,4}|=))(?!-)\S+"
        ),
        rf"\1{MASK}",
    ),
    (re.compile(r"\b(AKIA|ASIA)[A-Z0-9]{16}\b"), rf"\1{MASK}"),
    (re.compile(r"\b(gh[pousr]_|github_pat_|glpat-|hf_|xox[abprs]-|sk-)[A-Za-z0-9_-]{16,}"), rf"\1{MASK}"),
    (re.compile(r"\bAIza[A-Za-z0-9_-]{30,}"), MASK),
    (re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"), MASK),
)

_LINE_ENDS = re.compile(r"(\n|\r\n?)")
_KEY_END = "PRIVATE KEY-----"


def mask(text: str) -> str:
    """Return the text with every recognized password, token, signature and key replaced by `***`.

    Recognized are values by their names (`password=…`, `X-Amz-Signature=…`, `Authorization: …`), logins in URLs,
    forms of common tokens, private keys, and a launcher's dump of its environment (`env {…}`). A secret
    without a name and without a known form cannot be recognized. Numbers and paths are unchanged.
    """
    if not _HINT.search(text):
        return text
    for pattern, shown in _RULES:
        text = pattern.sub(shown, text)
    return text


# Text of any origin in a domain type.
Masked = Annotated[str, AfterValidator(mask)]


class LineMask:
    """Masks a log that arrives in pieces. A piece may end within a secret, so text is held until its line ends.

    Lines end with a line feed or, as progress bars do, with a carriage return.
    """

    # A longer line is shown in parts.
    LONGEST = 64 * 1024
    # The longest secret in such a line.
    HELD = 4 * 1024

    def __init__(self) -> None:
        self._rest = ""
        self._hidden = False  # within a line whose rest is hidden
        self._key = False  # within a private key

    def feed(self, piece: str) -> str:
        """Return the text that can be shown."""
        shown = []
        *lines, self._rest = _LINE_ENDS.split(self._rest + piece)
        # `split` keeps the ends: line, end, line, end, …, rest
        for line, end in zip(lines[::2], lines[1::2], strict=True):
            shown.append(self._line(line) + end)
            self._hidden = False
        if len(self._rest) > self.LONGEST:
            part = self.flush()
            if not (self._hidden or self._key):
                # A secret may continue in the next piece: masked text is masked again with what follows.
                part, self._rest = part[: -self.HELD], part[-self.HELD :]
            shown.append(part)
        return "".join(shown)

    def flush(self) -> str:
        """Return the rest of an unfinished line."""
        rest, self._rest = self._rest, ""
        shown = self._line(rest)
        self._hidden = self._hidden or ENVIRONMENT_LINE.match(rest) is not None
        return shown

    def _line(self, line: str) -> str:
        if self._hidden:
            return ""
        if self._key:
            _, end, line = line.partition(_KEY_END)
            self._key = not end
            return mask(line)
        shown = mask(line)
        begun = line.rfind("-----BEGIN ")
        self._key = begun >= 0 and "PRIVATE KEY-----" in line[begun:] and "-----END " not in line[begun:]
        return shown

"""The forms of secrets that `mask` recognizes, and what is shown instead.

A rule is only tried on text that contains one of its words. All quantifiers are either bounded, possessive, or
followed by an alternative that takes the rest of the line, so that no text takes quadratic time.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

MASK = "***"
# A launcher's dump of the whole environment: the line is not related to the failure.
ENVIRONMENT = "{…}"
ENVIRONMENT_LINE = re.compile(r"^[ \t]*env \{")

_KEY = r"[A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)? ?-{4,5}+"
KEY_BEGIN = re.compile(rf"-{{4,5}} ?BEGIN {_KEY}")
KEY_END = re.compile(rf"-{{4,5}} ?END {_KEY}")


class Rule(NamedTuple):
    """A form of secrets.

    Attributes:
        words: in lower case; text without any of them does not match the pattern.
        shown: replacement of a match, as of `re.sub`.
    """

    words: tuple[str, ...]
    pattern: re.Pattern[str]
    shown: str | Callable[[re.Match[str]], str]


# Quotes of JSON in JSON are escaped, each level with more backslashes.
_ESCAPED = r"\\{0,15}"
# To the quote that belongs to the first one; to the end of the line if there is none.
_QUOTED = (
    r"""(?:"(?:[^"\\\r\n]++|\\.)*+"|'(?:[^'\\\r\n]++|\\.)*+'(?:\\''(?:[^'\\\r\n]++|\\.)*+')*+"""
    r"""|(?P<escape>\\{1,15})(?P<quote>["'])[^\r\n]*?(?<!\\)(?P=escape)(?P=quote)"""
    rf"""|{_ESCAPED}["'][^\r\n]+)"""
)
# `b'…'`, `SecretStr('…')`
_OPENED = rf"""(?:(?:[bBuUrRfF]{{1,2}}|[A-Za-z_][\w.]{{0,60}}\()(?={_ESCAPED}["']))?{_QUOTED}"""
# Commas, closing brackets and the like end a value only before a space, a quote or another one of them.
_RUN = (
    r"""(?![\[({<]|\*\*\*[,;&])(?:[^\s"'\\,;&)\]}>\x07\x1b]|[,;&](?![\s,;&"'\\]|\Z)|[)\]}>](?=[\w$%@!#*+/=-])"""
    r"""|\\(?!\\{0,15}["'])|["'](?=[\w$]))++"""
)
_WITHIN = (
    r"""(?=[\[({<](?!\s*(?:[\])}>]|$)))(?:\{(?:[^{}\r\n]++|\{[^{}\r\n]*+\})*+\}|\[(?:[^\[\]\r\n]++|\[[^\[\]\r\n]*+\])*+\]"""
    r"""|\((?:[^()\r\n]++|\([^()\r\n]*+\))*+\)|<[^<>\r\n]*+>|[^\r\n]+)"""
)
_SIMPLE_VALUE = rf"(?:{_OPENED}|{_RUN})"
_VALUE = rf"(?:{_OPENED}|{_WITHIN}|{_RUN})"
# A message about a setting is not its value: `PASSWORD: is not set`, `SIGNING_KEY: cannot be read`.
_NO_VALUE = r"(?!(?:is (?:not|missing|empty|required|reserved)|cannot|must be|has no|unknown key|invalid name)\b)"
_SEPARATOR = rf"""(?:{_ESCAPED}["']\]?)?\s{{0,4}}(?::=|=>|!=|={{1,3}}|:)\s{{0,4}}{_NO_VALUE}"""
# Parameters of a URL have a rule of their own: their values end at `&`.
_WORD = r"""(?<![A-Za-z0-9_.-])(?!(?<=[?&])[A-Za-z0-9_.-]{1,120}=[^\s"'])[A-Za-z0-9_.-]{0,60}?"""
_KEYS = ("api", "secret", "access", "account", "private", "fernet")
_NAME = (
    rf"(?:password|passwd|passphrase|pwd|secret|credentials?|(?:{'|'.join(_KEYS)})[_-]?key(?:[_-]?id)?)"
    r"(?:[_-][A-Za-z0-9_-]{1,30})?"
)
_NAME_WORDS = (
    *("password", "passwd", "passphrase", "pwd", "secret", "credential"),
    *(f"{word}{sign}key" for word in _KEYS for sign in ("", "_", "-")),
)
# `token` is also a term of language models: with these names, or with letters and digits, it is a secret.
_OWNERS = (
    "auth|access|refresh|(?<![A-Za-z])id|session|security|hf|github|gitlab|api|bot|personal|deploy|private|vault"
)
_PARAMETER = (
    r"(?:x-(?:amz|goog|oss|cos|obs)-(?:signature|credential|security-token)|signature|sign|sig|auth|key"
    rf"|(?:[a-z]{{1,20}}[_-])?token|[a-z0-9_.-]{{0,60}}?{_NAME})"
)
# The start of a word, also behind an escaped line feed.
_EDGE = r"(?:(?<![A-Za-z0-9_])|(?<=\\[nrt]))"
# Percent sign of text that was encoded once or more often.
_PERCENT = r"%(?:25){0,2}"
_PORT = re.compile(rf"[0-9]{{1,5}}(?:[/?#]|{_PERCENT}2F)", re.I)
_PATH = re.compile(r"[/?#]")
_ENCODED_AT = re.compile(rf"{_PERCENT}40")
_ENCODED_COLON_OR_SLASH = re.compile(rf"{_PERCENT}(?:(3A)|2F)", re.I)
# `user:password` of curl: also `'-u', 'user:password'`, `-sSu user:password` and `-uuser:password`.
_CURL_LOGIN = re.compile(
    r"""(\s["']?(?:-[A-Za-z]{0,8}[uU]|--(?:proxy-)?user(?=[\s=,"']))["']?[=,]?\s{0,4}(["'])?[^\s:"']{0,256}:)(?(2)[^"'\r\n]+|[^\s"']+)"""
)


# `git@host`
_SHORTEST_LOGIN = 16


def _without_login(match: re.Match[str]) -> str:
    """`https://user:password@host`, `https://token@host`; `git@host` and other short names are not secrets.

    A password may contain `@` and `/`. Addresses with a port are not logins: `http://host:8080/package@1.0`.
    """
    text, pieces = match[0], []
    begin = done = 0
    last = text.rfind("@")
    while begin <= last:
        secret = _login(text, begin, last)
        if secret:
            pieces += [text[done : secret.start], MASK]
            done = secret.stop
        # Another address may follow without a space.
        begin = text.find("://", max(begin, done)) + len("://")
        if begin < len("://"):
            break
    return "".join([*pieces, text[done:]])


def _login(text: str, begin: int, last: int) -> slice | None:
    """Return the place of the secret in the address that begins there; None if there is none."""
    path = _PATH.search(text, begin)
    slash = path.start() if path else len(text)
    colon = text.find(":", begin, min(slash, last))
    if text.startswith("[", begin) or (colon >= 0 and _PORT.match(text, colon + 1)):
        return None
    if colon < 0:
        at = text.find("@", begin, slash)
        return slice(begin, at) if at - begin >= _SHORTEST_LOGIN else None
    # With an address as the user's name, `@` does not show where the password ends.
    at = text.rfind("@", colon, slash) if "@" in text[begin:colon] else last
    return slice(colon + 1, at) if at > colon + 1 else None


def _without_encoded_login(match: re.Match[str]) -> str:
    text = match[0]
    ends = [encoded.start() for encoded in _ENCODED_AT.finditer(text)]
    # The first one is the colon of the scheme, the second and third its slashes.
    colon = next((sign for sign in list(_ENCODED_COLON_OR_SLASH.finditer(text))[3:4] if sign[1]), None)
    if not ends or colon is None or colon.end() >= ends[-1] or _PORT.match(text, colon.end()):
        return text
    return f"{text[: colon.end()]}{MASK}{text[ends[-1] :]}"


def _without_curl_login(match: re.Match[str]) -> str:
    return _CURL_LOGIN.sub(rf"\1{MASK}", match[0])


_GROUP = rf"\g<1>{MASK}"

RULES: tuple[Rule, ...] = (
    Rule(("env {",), re.compile(r"(?m)^([ \t]*env )\{.*$"), rf"\1{ENVIRONMENT}"),
    Rule(
        ("private key",),
        re.compile(rf"(?s)({KEY_BEGIN.pattern})(?! \*\*\*).*?(?:{KEY_END.pattern}|\Z)"),
        rf"\1 {MASK}",
    ),
    # The text begins within a key.
    Rule(("private key",), re.compile(rf"(?s)\A.+(?<!-)(?={KEY_END.pattern})"), f"{MASK} "),
    Rule(("://",), re.compile(r"""(?<=://)[^\s"'<>`\x07\x1b]+"""), _without_login),
    Rule(
        ("%2f", "%252f", "%25252f"),
        re.compile(rf"""(?i){_PERCENT}3A(?:{_PERCENT}2F){{2}}[^\s"'<>&]+"""),
        _without_encoded_login,
    ),
    Rule(
        ("%3d", "%253d", "%25253d", "%3a", "%253a", "%25253a"),
        re.compile(
            rf"""(?i)({_WORD}(?:{_NAME}|token|signature|sig)(?:{_PERCENT}22)?{_PERCENT}3[AD](?:{_PERCENT}20|\+)?"""
            rf"""(?:{_PERCENT}22)?)(?:(?!{_PERCENT}2[236])[^\s&#"'<>])++"""
        ),
        _GROUP,
    ),
    Rule(
        ("?", "&"),
        re.compile(rf"""(?i)([?&](?:amp;)?{_PARAMETER}=)[^\s&#"'<>\x07\x1b]+"""),
        _GROUP,
    ),
    # To the end of the line, or to the quote that ends the text: `"Authorization": "…"`, `-H "Authorization: …"`.
    Rule(
        ("authorization",),
        re.compile(
            rf"""(?im)((?:proxy-)?authorization(?:{_ESCAPED}["']\]?)?[ \t]{{0,4}}[:=][ \t]{{0,4}}"""
            rf"""(?:(?P<escape>{_ESCAPED})(?P<quote>["']))?)"""
            r"""(?(quote)[^\r\n]*?(?=(?<!\\)(?P=escape)(?P=quote)|$)"""
            r"""|(?:[^"'\\\r\n]|\\["']?|(?<==)"[^"\r\n]*+"?)++)"""
        ),
        _GROUP,
    ),
    Rule(("bearer",), re.compile(r"(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{8,}"), _GROUP),
    Rule(("cookie",), re.compile(rf"(?i)((?:set-)?cookie(?:{_ESCAPED}[\"'])?\s{{0,4}}:\s{{0,4}}).+"), _GROUP),
    # On a line of its own, as in YAML, a value may have several words. `WrongPassword: message` is an exception.
    Rule(
        ("password", "passwd", "passphrase", "pwd", "secret"),
        re.compile(
            r"""(?im)^([ \t]{0,64}(?:-[ \t]{1,4})?["']?"""
            r"""(?:[a-z0-9_.-]{0,60}?[_.-]|(?-i:[a-z][A-Za-z0-9]{0,60}?))?"""
            r"""(?:password|passwd|passphrase|pwd|secret)["']?(?:[ \t]{0,4}:|[ \t]{1,4}=)[ \t]{1,4}"""
            rf"""{_NO_VALUE})(?!["'\[({{<]|[bur]{{1,2}}["'])[^\s,]+[ \t]+[^\r\n]+"""
        ),
        _GROUP,
    ),
    Rule(_NAME_WORDS, re.compile(rf"(?i)({_WORD}{_NAME}{_SEPARATOR}){_VALUE}"), _GROUP),
    Rule(_NAME_WORDS, re.compile(rf"(?i)(<[A-Za-z0-9_.:-]{{0,60}}?{_NAME}>)[^<\r\n]+"), _GROUP),
    Rule(
        ("login",),
        re.compile(
            r"(?i)(\blogin\s{1,4}[^\s]{1,256}\s{1,4}(?:account\s{1,4}[^\s]{1,256}\s{1,4})?password\s{1,4})\S+"
        ),
        _GROUP,
    ),
    Rule(("token",), re.compile(rf"(?i)({_WORD}(?:{_OWNERS})[_-]?token{_SEPARATOR}){_SIMPLE_VALUE}"), _GROUP),
    Rule(
        ("token",),
        re.compile(
            rf"""(?i)((?<![A-Za-z0-9.-])(?:[A-Za-z0-9]{{1,20}}_){{0,4}}token(?:{_ESCAPED}["']\]?)?\s{{0,4}}(?:={{1,3}}|:)\s{{0,4}}"""
            rf"""(?:[bBuU]?{_ESCAPED}["'])?)"""
            r"(?=[A-Za-z._~+/=-]{0,200}[0-9])(?=[0-9]{0,200}[A-Za-z])[A-Za-z0-9._~+/=-]{8,}"
        ),
        _GROUP,
    ),
    Rule(
        ("password", "passwd", "secret", "token", "api-key", "access-key"),
        re.compile(
            r"(?i)((?<!-)--[a-z0-9-]{0,30}(?:password|passwd|secret|token|api-key|access-key)"
            rf"""(?:\s{{1,4}}|=|["'],\s{{0,4}}))(?!-)(?:{_SIMPLE_VALUE}|\S+)"""
        ),
        _GROUP,
    ),
    Rule(("curl",), re.compile(r"\bcurl\b[^\r\n]*"), _without_curl_login),
    Rule(("sshpass",), re.compile(r"""(\bsshpass\s{1,4}-p\s{0,4}["']?)[^\s"']+"""), _GROUP),
    # A login of docker's configuration.
    Rule(
        ("auth",),
        re.compile(rf"""({_ESCAPED}"auth{_ESCAPED}"\s{{0,4}}:\s{{0,4}}{_ESCAPED}")[A-Za-z0-9+/=]{{8,}}"""),
        _GROUP,
    ),
    Rule(
        ("hooks.slack.com", "/webhooks/"),
        re.compile(
            r"""(?i)(\bhooks\.slack\.com/(?:services|workflows|triggers)/|\bdiscord(?:app)?\.com/api/webhooks/)[^\s"'<>)\\]+"""
        ),
        _GROUP,
    ),
    Rule(("akia", "asia"), re.compile(rf"({_EDGE}(?:AKIA|ASIA))[A-Z0-9]{{16}}\b"), _GROUP),
    Rule(
        (
            "ghp_",
            "gho_",
            "ghu_",
            "ghs_",
            "ghr_",
            "github_pat_",
            "glpat-",
            "hf_",
            "xox",
            "sk-",
            "dckr_pat_",
            "pypi-age",
        ),
        re.compile(
            rf"({_EDGE}(?:gh[pousr]_|github_pat_|glpat-|hf_|xox[abeprs]-|sk-|dckr_[po]at_|pypi-AgE))[A-Za-z0-9_-]{{16,}}"
        ),
        _GROUP,
    ),
    Rule(("aiza",), re.compile(rf"{_EDGE}AIza[A-Za-z0-9_-]{{30,}}"), MASK),
    Rule(("eyj",), re.compile(rf"{_EDGE}eyJ[A-Za-z0-9_-]{{8,}}\.[A-Za-z0-9_-]{{8,}}(?:\.[A-Za-z0-9_-]*)?"), MASK),
)

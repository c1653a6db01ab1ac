"""The grammar of commands: the first line of a comment, `/tipc VERB …` or `/re-run …`.

Words are separated by spaces and compared as a whole, so `/re-run inference` is never another job's name.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tipcflow.domain.masking import mask

FORMS = {
    "run": "/tipc run [whole] [CHAIN…]",
    "rerun": "/tipc rerun [failed | CHAIN…]",
    "ab": "/tipc ab [CHAIN…]",
    "cancel": "/tipc cancel",
    "accept": "/tipc accept METRIC because REASON",
    "approve": "/tipc approve SHA",
    "help": "/tipc help",
}
RERUN = "/re-run all-failed | CHAIN…"
HELP = "\n".join(
    [
        f"- `{FORMS['run']}`: run the selected chains, or the named ones; `whole` on the full dataset",
        f"- `{FORMS['rerun']}`: run all chains of this commit again, those without a pass, or the named ones",
        f"- `{RERUN}`: the same",
        f"- `{FORMS['ab']}`: compare base and head by pairs of runs, of the selected chains or the named ones",
        f"- `{FORMS['cancel']}`: stop the runs of this pull request",
        f"- `{FORMS['accept']}`: accept a changed value as the new baseline",
        f"- `{FORMS['approve']}`: let the code of a fork run, for this commit only",
        f"- `{FORMS['help']}`: show this list",
    ]
)
_MOST_CHAINS = 20
_LONGEST_SHOWN = 40
_CHAIN = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.*?/-]{0,199}$")
_METRIC = re.compile(r"^[A-Za-z][A-Za-z0-9_.]{0,99}$")
_SHA = re.compile(r"^[0-9a-f]{40}([0-9a-f]{24})?$")
_PREFIX = re.compile(r"^[0-9a-f]{7,64}$")


@dataclass(frozen=True)
class Run:
    """Run the selected chains, or those that match a glob of `chains`; `whole`: on the full dataset."""

    chains: tuple[str, ...] = ()
    whole: bool = False


@dataclass(frozen=True)
class Rerun:
    """Run again: all chains of the commit, those without a pass (`failed`), or those of `chains`."""

    chains: tuple[str, ...] = ()
    failed: bool = False


@dataclass(frozen=True)
class Ab:
    """Compare the base with the head by pairs of runs, of the selected chains or those that match `chains`."""

    chains: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cancel:
    """Stop the runs of the pull request."""


@dataclass(frozen=True)
class Accept:
    """Accept the value of a metric as the new baseline."""

    metric: str
    because: str


@dataclass(frozen=True)
class Approve:
    """Let the code of a fork run, for one commit; `sha` is complete."""

    sha: str


@dataclass(frozen=True)
class Help:
    """Show the commands."""


@dataclass(frozen=True)
class Wrong:
    """Not a valid command; `reply` is one line with the valid form."""

    reply: str


Command = Run | Rerun | Ab | Cancel | Accept | Approve | Help
Words = Sequence[str]


def parse(comment: str) -> Command | Wrong | None:
    """The command in the first line of a comment; None if the comment is not for tipcflow."""
    line = comment.lstrip("\ufeff\r\n").split("\n", 1)[0].strip()
    name, *words = line.split() or [""]
    if name == "/re-run":
        return _re_run(words)
    if name != "/tipc":
        return None
    if not words:
        return _wrong("a command is missing", "help")
    verb, *rest = words
    if verb not in _VERBS:
        return Wrong(
            f"`{_shown(verb)}` is not a command. Valid: {', '.join(f'`{form}`' for form in FORMS.values())}"
        )
    return _VERBS[verb](rest)


def _run(words: Words) -> Run | Wrong:
    whole = bool(words) and words[0] == "whole"
    chains = words[1:] if whole else words
    return _bad_chain(chains, "run") or Run(tuple(chains), whole)


def _rerun(words: Words) -> Rerun | Wrong:
    if words and words[0] in ("failed", "all-failed"):
        if len(words) > 1:
            return _wrong(f"`{_shown(words[1])}` after `{words[0]}`", "rerun")
        return Rerun(failed=True)
    return _bad_chain(words, "rerun") or Rerun(tuple(words))


def _ab(words: Words) -> Ab | Wrong:
    return _bad_chain(words, "ab") or Ab(tuple(words))


def _re_run(words: Words) -> Rerun | Wrong:
    if not words:
        return Wrong(f"Which chains? Valid: `{RERUN}`")
    return _rerun(words)


def _accept(words: Words) -> Accept | Wrong:
    if len(words) < 3 or words[1] != "because":
        return _wrong("a metric and a reason are needed", "accept")
    if not _METRIC.match(words[0]):
        return _wrong(f"`{_shown(words[0])}` is not a metric", "accept")
    return Accept(words[0], mask(" ".join(words[2:])))


def _approve(words: Words) -> Approve | Wrong:
    if len(words) == 1 and _SHA.match(words[0]):
        return Approve(words[0])
    if len(words) == 1 and _PREFIX.match(words[0]):
        return _wrong("the complete commit hash is needed (40 characters)", "approve")
    return _wrong("a commit hash is needed", "approve")


def _alone(command: Cancel | Help, verb: str) -> Callable[[Words], Command | Wrong]:
    def made(words: Words) -> Command | Wrong:
        return _wrong(f"`{_shown(words[0])}` after `{verb}`", verb) if words else command

    return made


_VERBS: dict[str, Callable[[Words], Command | Wrong]] = {
    "run": _run,
    "rerun": _rerun,
    "ab": _ab,
    "cancel": _alone(Cancel(), "cancel"),
    "accept": _accept,
    "approve": _approve,
    "help": _alone(Help(), "help"),
}


def _bad_chain(chains: Words, verb: str) -> Wrong | None:
    bad = next((chain for chain in chains if not _CHAIN.match(chain)), None)
    if bad is not None:
        return _wrong(f"`{_shown(bad)}` is not a chain", verb)
    if len(chains) > _MOST_CHAINS:
        return _wrong(f"{len(chains)} chains, at most {_MOST_CHAINS}", verb)
    return None


def _wrong(what: str, verb: str) -> Wrong:
    return Wrong(f"{what[0].upper()}{what[1:]}. Valid: `{FORMS[verb]}`")


def _shown(word: str) -> str:
    """A word of the user inside backticks: it cannot mention users, link or leave the line."""
    return re.sub(r"[^A-Za-z0-9_.*?/:+-]", "?", mask(word))[:_LONGEST_SHOWN]

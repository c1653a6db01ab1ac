"""Rules about values: how the shell and the scripts' helper functions interpret them."""

import re
from collections import Counter

from tipcflow.domain.characters import first_invisible
from tipcflow.params.file import Slot
from tipcflow.params.layout import COMMANDS, FILLER
from tipcflow.params.limits import excess
from tipcflow.params.lint.subject import Hit, Rule, Severity, Subject
from tipcflow.params.shell import ShellAct, shell_acts

_LISTS = ("list", "modes", "paired")
_PYTHON = re.compile(r"python[\d.]*")
_FLAGS = ("infer_quant", "mkldnn", "tensorrt", "device", "use_gpu")
_TRUE_FALSE = {"true": "True", "false": "False"}


def colon_cut(subject: Subject) -> list[Hit]:
    """A value is truncated at its first colon."""
    if subject.dialect.split != "first":
        return []
    return [
        Hit(
            slot.line,
            f"the value of '{slot.key}' is truncated at its colon: {slot.full!r} becomes {slot.value!r}",
            "use a value without a colon, for example a path instead of a URL",
        )
        for slot in subject.slots()
        if slot.value != slot.full and subject.dialect.kind(slot.name) != "key" and not slot.key.endswith("_url")
    ]


def blank_ends(subject: Subject) -> list[Hit]:
    """Leading and trailing spaces are part of a value."""
    hits = []
    for slot in subject.slots():
        value = slot.full.rstrip("\r")
        plain = value.strip()
        begins = value == value.rstrip() and slot.name in COMMANDS
        if value == plain or not plain or begins or subject.dialect.kind(slot.name) == "key":
            continue
        if any(item != item.strip() == "null" for item in slot.items):
            message = f"{value!r} is not null: '{slot.key}' is passed with an argument"
        else:
            message = f"the leading or trailing space of {value!r} is part of the value of '{slot.key}'"
        exact = subject.dialect.kind(slot.name) in _LISTS or slot.name == "model" or plain == "null"
        split = value != value.lstrip()
        severity = Severity.ERROR if exact else Severity.WARNING if split else None
        hits.append(Hit(slot.line, message, "delete the space", severity))
    return hits


def metacharacters(subject: Subject) -> list[Hit]:
    """Commands are built as text and evaluated: the shell interprets special characters in a value."""
    hits = []
    for slot in subject.slots():
        if FILLER.fullmatch(slot.text.rstrip("\r")):
            continue
        for what, does, severity in _shell_acts(slot, subject):
            message = f"{what} in '{slot.text.strip()[:120]}': {does}"
            hits.append(Hit(slot.line, message, f"use text without {what}", severity))
    return hits


def _shell_acts(slot: Slot, subject: Subject) -> list[tuple[str, str, Severity]]:
    kind = subject.dialect.kind(slot.name)
    text = "" if kind == "key" else slot.full.rstrip("\r")
    if slot.name == "gpu_list":
        text = text.replace(";", "")
    acts = []
    for act in (*shell_acts(slot.key), *shell_acts(text)):
        if act.kind is ShellAct.MATCH_FILES and slot.name == "weights_name":
            continue
        error = act.breaks or act.kind is ShellAct.EXPAND_VARIABLE
        acts.append((act.what, act.does, Severity.ERROR if error else Severity.WARNING))
    if "|" in slot.value and kind == "plain":
        acts.append(("|", "it becomes a space, because this slot holds one value", Severity.ERROR))
    return list(dict.fromkeys(acts))


def invisible(subject: Subject) -> list[Hit]:
    """Control and invisible characters."""
    hits = []
    for line in subject.lines:
        character = first_invisible(line.text.removesuffix("\r"))
        if character:
            message = f"character {character[0] + 1} of the line is invisible: {character[1]}"
            hits.append(Hit(line.number, message, "delete the character"))
    return hits


def too_long(subject: Subject) -> list[Hit]:
    """Lists whose loops would never end in practice."""
    problem = excess(subject.params, subject.dialect)
    if problem is None:
        return []
    return [Hit(problem.line, f"{problem.message}: {problem.found}", f"list {problem.expected}")]


def flag_words(subject: Subject) -> list[Hit]:
    """Flags are compared with exactly True and False."""
    hits = []
    for name in _FLAGS:
        unread = name == "infer_quant" and (
            subject.dialect.whole_infer.quantised or not subject.dialect.whole_infer.quant_listed
        )
        slot = subject.slot(name)
        for word in subject.listed(name):
            meant = _meant(word)
            if slot is None or not meant:
                continue
            message = f"{word!r} is neither True nor False" + (
                ", but the script reads another slot" if unread else ""
            )
            hits.append(Hit(slot.line, message, f"write {meant}", Severity.NOTE if unread else None))
    return hits


def _meant(word: str) -> str:
    """True or False for a misspelling of either; '' for correct and for other words."""
    if word in ("True", "False"):
        return ""
    lower = word.lower()
    if lower in _TRUE_FALSE:
        return _TRUE_FALSE[lower]
    return next((meant for plain, meant in _TRUE_FALSE.items() if sorted(lower) == sorted(plain)), "")


def model_name(subject: Subject) -> list[Hit]:
    """The model name is a folder name in redirections."""
    slot = subject.slot("model")
    if slot is None:
        return []
    name = slot.value.strip()
    if name in ("", "null"):
        return [Hit(slot.line, "the model name is missing", "add one: it names the output folder")]
    if " " in name or "/" in name or name.startswith("-") or name == "..":
        message = f"{name!r} is not a valid folder name: log files cannot be written"
        return [Hit(slot.line, message, "use letters, digits, '-', '_' and '.'")]
    return []


def listed_twice(subject: Subject) -> list[Hit]:
    """A duplicate alternative runs twice and overwrites its own files."""
    hits = []
    axes = {*subject.dialect.cpu.axes, *subject.dialect.gpu.axes, "gpu_list", "autocast", "trainers", "device"}
    for name in sorted(axes):
        slot = subject.slot(name)
        twice = next((item for item, count in Counter(subject.items(name)).items() if count > 1), None)
        if slot is not None and twice is not None:
            message = f"'{slot.key}' lists {twice!r} more than once: the second run overwrites the first"
            hits.append(Hit(slot.line, message, "list each alternative once"))
    return hits


def python_word(subject: Subject) -> list[Hit]:
    """The interpreter is the start of every command."""
    slot = subject.slot("python")
    if slot is None or any(_PYTHON.fullmatch(word.rsplit("/", 1)[-1]) for word in slot.value.split()):
        return []
    message = f"{slot.value!r} is not a Python interpreter, and every command starts with it"
    return [Hit(slot.line, message, "write python or python3")]


# Rules that hold for lines at any position.
ANYWHERE = (
    Rule(
        "invisible-character",
        Severity.ERROR,
        "a control or invisible character becomes part of a path or an argument; the planner refuses the file",
        invisible,
        True,
    ),
    Rule(
        "list-length",
        Severity.ERROR,
        "every list is a loop and nested loops multiply: nothing else is examined; the planner refuses the file",
        too_long,
        True,
    ),
)
RULES = (
    *ANYWHERE,
    Rule("colon-cut", Severity.ERROR, "`url:https://host/x` becomes `url=https`", colon_cut),
    Rule(
        "blank-at-end",
        Severity.NOTE,
        "leading and trailing spaces are kept: `null ` is a value, `key= x` is two words; an error in lists, mode "
        "tables and the model name, a warning before other values",
        blank_ends,
    ),
    Rule(
        "metacharacter",
        Severity.ERROR,
        "commands are evaluated as text: `;` ends one, ` #` cuts off all later arguments, `$(…)` runs; the "
        "planner refuses those. `$NAME` (an error), `~`, `*` and `{a,b}` are expanded, `|` becomes a space",
        metacharacters,
    ),
    Rule(
        "flag-word",
        Severity.ERROR,
        "`Fasle` is neither True nor False: skip rules for either do not apply; a note if the script never reads "
        "the slot",
        flag_words,
    ),
    Rule(
        "listed-twice", Severity.ERROR, "the second run overwrites the logs and weights of the first", listed_twice
    ),
    Rule("python-word", Severity.ERROR, "it is the first word of every command", python_word),
    Rule("model-name", Severity.ERROR, "log and folder names are built from it, unquoted", model_name),
)

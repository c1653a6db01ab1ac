"""Rules about values: how the shell and the scripts' helper functions interpret them."""

import re

from tipcflow.params.file import Slot
from tipcflow.params.layout import COMMANDS
from tipcflow.params.lint.subject import Hit, Rule, Severity, Subject

_QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
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
        if subject.dialect.kind(slot.name) == "key" or slot.value in ("", "null"):
            continue
        for what, does, severity in _shell_acts(slot, subject):
            message = f"{what} in the value of '{slot.key}': {does}"
            hits.append(Hit(slot.line, message, f"use a value without {what}", severity))
    return hits


def _shell_acts(slot: Slot, subject: Subject) -> list[tuple[str, str, Severity]]:
    value = slot.value
    bare = _QUOTED.sub("", value)
    acts = []
    if slot.name != "gpu_list" and re.search(r"[;&]", bare):
        acts.append(("; or &", "the command ends there and another one starts", Severity.ERROR))
    if re.search(r"[$`]", value):
        acts.append(("$ or `", "the shell expands it", Severity.ERROR))
    if re.search(r"[<>]", bare):
        acts.append(("< or >", "the shell interprets it as a redirection", Severity.ERROR))
    if re.search(r"[\"']", bare):
        acts.append(("an unbalanced quote", "the command cannot be parsed", Severity.ERROR))
    if "\\" in bare:
        acts.append(("a backslash", "the shell removes it", Severity.WARNING))
    if re.search(r"[*?]", bare) and slot.name != "weights_name":
        acts.append(("* or ?", "it is replaced by matching files", Severity.WARNING))
    if "|" in value and subject.dialect.kind(slot.name) == "plain":
        acts.append(("|", "it becomes a space, because this slot holds one value", Severity.ERROR))
    return acts


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
    if " " in name or "/" in name:
        message = f"{name!r} is not a valid folder name: log files cannot be written"
        return [Hit(slot.line, message, "use letters, digits, '-', '_' and '.'")]
    return []


def listed_twice(subject: Subject) -> list[Hit]:
    """A duplicate alternative runs twice and overwrites its own files."""
    hits = []
    axes = {*subject.dialect.cpu.axes, *subject.dialect.gpu.axes, "gpu_list", "autocast", "trainers", "device"}
    for name in sorted(axes):
        slot = subject.slot(name)
        items = subject.items(name)
        twice = [item for place, item in enumerate(items) if item in items[:place]]
        if slot is not None and twice:
            message = f"'{slot.key}' lists {twice[0]!r} more than once: the second run overwrites the first"
            hits.append(Hit(slot.line, message, "list each alternative once"))
    return hits


def python_word(subject: Subject) -> list[Hit]:
    """The interpreter is the start of every command."""
    slot = subject.slot("python")
    if slot is None or any(_PYTHON.fullmatch(word.rsplit("/", 1)[-1]) for word in slot.value.split()):
        return []
    message = f"{slot.value!r} is not a Python interpreter, and every command starts with it"
    return [Hit(slot.line, message, "write python or python3")]


RULES = (
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
        "commands are evaluated as text: `;` ends one, `$NAME` and `*` are expanded, `|` becomes a space",
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

"""Rules about mode tables: `mode=value|mode=value`."""

from tipcflow.params.file import Slot
from tipcflow.params.lint.subject import Hit, Rule, Severity, Subject
from tipcflow.params.modes import MODES, TABLE_MODES, TRAINING_MODES
from tipcflow.params.values import is_null, mode_entries, split_list

_OLD = {
    "lite_train_infer": "lite_train_lite_infer",
    "whole_train_infer": "whole_train_whole_infer",
    "infer": "whole_infer",
}


def _tables(subject: Subject) -> list[Slot]:
    """Slots that the script looks up by mode."""
    dialect = subject.dialect
    overruled = {*dialect.bash_vars, *dialect.by_mode}
    return [
        slot
        for slot in subject.slots()
        if dialect.kind(slot.name) == "modes" and slot.name not in overruled and not is_null(slot.value.strip())
    ]


def entries(subject: Subject) -> list[Hit]:
    """Each mode needs its own entry."""
    hits = []
    for slot in _tables(subject):
        table = mode_entries(slot.value)
        lacking = [mode for mode in TRAINING_MODES if mode not in table]
        if not table or not lacking:
            continue
        message = f"'{slot.key}' has no entry for {', '.join(lacking)}: the script then drops the argument"
        worst = Severity.ERROR if "lite_train_lite_infer" in lacking else None
        hits.append(Hit(slot.line, message, "add " + "|".join(f"{mode}=…" for mode in lacking), worst))
    return hits


def bare(subject: Subject) -> list[Hit]:
    """A bare value in a mode table never matches."""
    hits = []
    for slot in _tables(subject):
        plain = [item for item in split_list(slot.value) if "=" not in item]
        if plain:
            where = "everywhere" if not mode_entries(slot.value) else "for this entry"
            message = f"{plain[0]!r} has no mode: the script omits '{slot.key}' {where}"
            hits.append(Hit(slot.line, message, f"write {'|'.join(f'{m}={plain[0]}' for m in TRAINING_MODES)}"))
    return hits


def unknown(subject: Subject) -> list[Hit]:
    """An entry for a mode that does not exist."""
    hits = []
    for slot in _tables(subject):
        for mode in mode_entries(slot.value):
            if mode in TABLE_MODES:
                continue
            fix = f"write {_OLD[mode]}" if mode in _OLD else f"use one of {', '.join(MODES)}"
            hits.append(Hit(slot.line, f"'{slot.key}': unknown mode {mode!r}", fix))
    return hits


def cut_entry(subject: Subject) -> list[Hit]:
    """The value of an entry is truncated at its `=`."""
    hits = []
    for slot in _tables(subject):
        for item in split_list(slot.value):
            if item.count("=") > 1:
                mode, value, *_ = item.split("=")
                message = f"'{slot.key}': {item!r} becomes {value!r} in mode {mode}"
                hits.append(Hit(slot.line, message, "use a value without '='"))
    return hits


def unread_mode_table(subject: Subject) -> list[Hit]:
    """A mode table in a slot that the script passes unchanged."""
    hits = []
    for slot in subject.slots():
        if subject.dialect.kind(slot.name) != "plain" or not any(
            f"{mode}=" in slot.value for mode in TRAINING_MODES
        ):
            continue
        message = f"'{slot.key}' is not a mode table in this suite: {slot.value!r} is passed unchanged"
        hits.append(Hit(slot.line, message, "use one value for all modes"))
    return hits


def epochs_ignored(subject: Subject) -> list[Hit]:
    """PaddleClas looks up its epochs without the mode."""
    slot = subject.slot("epochs")
    if slot is None or not subject.dialect.has("epochs-ignored"):
        return []
    always = subject.dialect.bash_vars["epochs"]["*"]
    others = {mode: value for mode, value in mode_entries(slot.value).items() if value != always}
    if not others:
        return []
    listed = ", ".join(f"{value} in {mode}" for mode, value in others.items())
    message = f"'{slot.key}' is ignored: the script always trains {always} epochs, not {listed}"
    return [Hit(slot.line, message, "use --compat spec (the default)")]


RULES = (
    Rule(
        "mode-entry",
        Severity.WARNING,
        "without an entry the script omits the argument, and the framework's default applies: full-length "
        "training in a lite mode (an error if lite_train_lite_infer is missing)",
        entries,
    ),
    Rule(
        "mode-bare",
        Severity.ERROR,
        "`epoch:8` never matches a mode: the script omits the argument, and the framework's default applies",
        bare,
    ),
    Rule(
        "mode-unknown", Severity.WARNING, "mode names from before 2022 and misspelled names match nothing", unknown
    ),
    Rule("mode-cut", Severity.ERROR, "the value of `mode=a=b` is `a`", cut_entry),
    Rule("mode-table-unread", Severity.ERROR, "the slot is a plain value in this suite", unread_mode_table),
    Rule("epochs-ignored", Severity.WARNING, "PaddleClas always trains 2 epochs", epochs_ignored),
)

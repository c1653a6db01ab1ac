"""Rules about trainers and training precision."""

from tipcflow.params.lint.subject import Hit, Rule, Severity, Subject
from tipcflow.params.sections import STATIC
from tipcflow.params.values import FORMATS, NOTHING, is_unknown_format

_PLAIN = ("null", "", "fp32", "False")


def _names(subject: Subject) -> dict[str, str]:
    """Trainer name -> script, for all trainers with a line in the file."""
    slots = [subject.slot(spec.train) for spec in subject.dialect.trainers.values()]
    scripts = {slot.key.strip(): slot.value.strip() for slot in slots if slot and slot.key.strip() != "null"}
    norm = subject.slot("norm_train")
    script = norm.value.strip() if norm else ""
    if subject.dialect.norm_alias:
        scripts[subject.dialect.norm_alias] = script
    section = any(STATIC in line.text for line in subject.lines)
    slot = subject.slot("train1")
    in_slot = subject.dialect.to_static == "slot" and slot is not None and slot.key.strip() != "null"
    if (subject.dialect.to_static == "tail" and section) or in_slot:
        scripts[slot.key.strip() if in_slot and slot else "to_static_train"] = script
    return scripts


def unknown(subject: Subject) -> list[Hit]:
    """A trainer without a line in the file."""
    slot = subject.slot("trainers")
    scripts = _names(subject)
    if slot is None or subject.slot("norm_train") is None:
        return []
    does = "the norm trainer runs under this name"
    harmless = len(subject.dialect.trainers) < 2  # one trainer line serves every name
    if subject.dialect.unknown_trainer == "skip":
        does = "nothing runs for it"
    return [
        Hit(
            slot.line,
            f"trainer {name!r} has no line in the file: {does}",
            f"use {' or '.join(scripts)}",
            Severity.WARNING if name == "null" or harmless else None,
        )
        for name in subject.items("trainers")
        if name not in scripts
    ]


def nothing_listed(subject: Subject) -> list[Hit]:
    """An empty list is a loop without iterations."""
    hits = []
    for name, full in (("trainers", "norm_train"), ("autocast", "null")):
        slot = subject.slot(name)
        if slot is not None and not slot.items:
            message = f"'{slot.key}' is empty: nothing runs, and the script exits with 0"
            hits.append(Hit(slot.line, message, f"write {slot.key}:{full}"))
    return hits


def no_script(subject: Subject) -> list[Hit]:
    """A listed trainer without a script is skipped."""
    slot = subject.slot("trainers")
    scripts = _names(subject)
    if slot is None or subject.slot("norm_train") is None:
        return []
    return [
        Hit(
            slot.line,
            f"trainer {name!r} has no script: it is skipped without a message",
            f"add a script for {name}",
        )
        for name in subject.items("trainers")
        if scripts.get(name) in NOTHING
    ]


def precision(subject: Subject) -> list[Hit]:
    """A precision word without an effect on arguments."""
    slot = subject.slot("autocast")
    dialect = subject.dialect
    if slot is None or "{autocast=}" in dialect.train.single:
        return []
    effects = [dialect.amp, *dialect.amp_vars.values()]
    return [
        Hit(
            slot.line,
            f"unknown precision {word!r}: the script trains in fp32 under this name",
            "use one of "
            + ", ".join(sorted({word for effect in effects for word, text in effect.items() if text})),
        )
        for word in subject.items("autocast")
        if word not in _PLAIN and not any(effect.get(word) for effect in effects)
    ]


def number_format(subject: Subject) -> list[Hit]:
    """A precision of trainings or inference that names a number format that does not exist."""
    return [
        Hit(slot.line, f"unknown precision {word!r}", f"use one of {', '.join(FORMATS)}")
        for name in ("autocast", "precision")
        if (slot := subject.slot(name))
        for word in dict.fromkeys(subject.items(name))
        if is_unknown_format(word)
    ]


RULES = (
    Rule(
        "trainer-unknown",
        Severity.ERROR,
        "an unknown trainer runs as norm_train (PaddleDetection: not at all); a warning for `null` and in suites "
        "with a single trainer",
        unknown,
    ),
    Rule(
        "nothing-listed", Severity.ERROR, "an empty trainer or precision list: no command, exit 0", nothing_listed
    ),
    Rule(
        "trainer-no-script",
        Severity.WARNING,
        "the trainer is skipped without a line in the results log",
        no_script,
    ),
    Rule(
        "precision-format",
        Severity.ERROR,
        "the suite fails on an unknown number format, or computes in fp32; tipcflow refuses the file",
        number_format,
    ),
    Rule("precision-word", Severity.ERROR, "an unknown word only changes a folder name", precision),
)

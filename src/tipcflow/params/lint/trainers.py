"""Rules about trainers and training precision."""

from tipcflow.params.lint.subject import Hit, Rule, Severity, Subject
from tipcflow.params.sections import STATIC
from tipcflow.params.values import NOTHING

_PLAIN = ("null", "", "fp32", "False")


def _names(subject: Subject) -> dict[str, str]:
    """Trainer name -> its script, of all that the file has a line for."""
    slots = [subject.slot(spec.train) for spec in subject.dialect.trainers.values()]
    found = {slot.key.strip(): slot.value.strip() for slot in slots if slot and slot.key.strip() != "null"}
    norm = subject.slot("norm_train")
    script = norm.value.strip() if norm else ""
    if subject.dialect.norm_alias:
        found[subject.dialect.norm_alias] = script
    section = any(STATIC in line.text for line in subject.lines)
    slot = subject.slot("train1")
    in_slot = subject.dialect.to_static == "slot" and slot is not None and slot.key.strip() != "null"
    if (subject.dialect.to_static == "tail" and section) or in_slot:
        found[slot.key.strip() if in_slot and slot else "to_static_train"] = script
    return found


def unknown(subject: Subject) -> list[Hit]:
    """A name that no line of the file has."""
    slot = subject.slot("trainers")
    known = _names(subject)
    if slot is None or subject.slot("norm_train") is None:
        return []
    does = "the norm trainer runs under this name"
    harmless = len(subject.dialect.trainers) < 2  # one trainer line serves every name
    if subject.dialect.unknown_trainer == "skip":
        does = "nothing runs for it"
    return [
        Hit(
            slot.line,
            f"no line of the file belongs to trainer {name!r}: {does}",
            f"use {' or '.join(known)}",
            Severity.WARNING if name == "null" or harmless else None,
        )
        for name in subject.items("trainers")
        if name not in known
    ]


def nothing_listed(subject: Subject) -> list[Hit]:
    """An empty list is a loop without a turn."""
    hits = []
    for name, full in (("trainers", "norm_train"), ("autocast", "null")):
        slot = subject.slot(name)
        if slot is not None and not slot.items:
            message = f"'{slot.key}' is empty: nothing at all runs, and the script succeeds"
            hits.append(Hit(slot.line, message, f"write {slot.key}:{full}"))
    return hits


def no_script(subject: Subject) -> list[Hit]:
    """A listed trainer without a script is left out."""
    slot = subject.slot("trainers")
    known = _names(subject)
    if slot is None or subject.slot("norm_train") is None:
        return []
    return [
        Hit(slot.line, f"trainer {name!r} has no script: it is left out without a word", f"give {name} a script")
        for name in subject.items("trainers")
        if known.get(name) in NOTHING
    ]


def precision(subject: Subject) -> list[Hit]:
    """A precision word that reaches no argument."""
    slot = subject.slot("autocast")
    dialect = subject.dialect
    if slot is None or "{autocast=}" in dialect.train.single:
        return []
    effects = [dialect.amp, *dialect.amp_vars.values()]
    return [
        Hit(
            slot.line,
            f"the script knows no precision {word!r}: it trains in fp32 under this name",
            "use one of "
            + ", ".join(sorted({word for effect in effects for word, text in effect.items() if text})),
        )
        for word in subject.items("autocast")
        if word not in _PLAIN and not any(effect.get(word) for effect in effects)
    ]


RULES = (
    Rule(
        "trainer-unknown",
        Severity.ERROR,
        "an unknown trainer is trained as norm_train (PaddleDetection: not at all); a warning for "
        "`null`, and where a suite knows one trainer only",
        unknown,
    ),
    Rule(
        "nothing-listed", Severity.ERROR, "an empty trainer or precision list: no command, exit 0", nothing_listed
    ),
    Rule("trainer-no-script", Severity.WARNING, "skipped without a line in the results log", no_script),
    Rule("precision-word", Severity.ERROR, "unknown words change a folder's name and nothing else", precision),
)

"""Rules about inference: which legs of the file never run."""

from collections import Counter
from collections.abc import Iterator
from itertools import product

from tipcflow.params.lint.subject import Hit, Rule, Severity, Subject
from tipcflow.params.specs import DEVICES, PRECISIONS, SkipRule
from tipcflow.params.values import is_null


def _legs(subject: Subject) -> Iterator[tuple[str, dict[str, str]]]:
    """Device and axes' words of every leg that the file declares, quantized or not."""
    quants = _quant_words(subject)
    for word in dict.fromkeys(subject.items("device")):
        device = DEVICES.get(word)
        if device is None:
            continue
        axes = (subject.dialect.cpu if device == "cpu" else subject.dialect.gpu).axes
        for words in product(quants, *(subject.items(axis) for axis in axes)):
            yield device, dict(zip(("quant", *axes), words, strict=True))


def _quant_words(subject: Subject) -> list[str]:
    """The words that state whether the models of this file are quantized, trained or listed ones."""
    if subject.dialect.quant:
        return [subject.dialect.quant]
    keys = {
        slot.key.strip(): str(spec.quant)
        for name, spec in subject.dialect.trainers.items()
        if name != "norm" and (slot := subject.slot(spec.train))
    }
    norm = subject.dialect.trainers.get("norm")
    # All other names are norm trainings.
    trained = [keys.get(name, str(norm.quant) if norm else "False") for name in subject.listed("trainers")]
    whole = subject.dialect.whole_infer
    models = [] if whole.quantised or not whole.quant_listed else subject.listed("infer_quant")
    return list(dict.fromkeys([*trained, *(word for word in models if word in ("True", "False"))])) or ["False"]


def skipped(subject: Subject) -> list[Hit]:
    """Legs that the script skips without a message."""
    slot = subject.slot("device")
    if slot is None:
        return []
    declared: Counter[str] = Counter()
    left_out: dict[str, Counter[int]] = {"cpu": Counter(), "gpu": Counter()}
    rules = subject.dialect.skip
    for device, leg in _legs(subject):
        declared[device] += 1
        by = next((n for n, rule in enumerate(rules) if rule.device == device and rule.leaves_out(leg)), None)
        if by is not None:
            left_out[device][by] += 1
    hits = []
    for device, count in declared.items():
        counts = left_out[device]
        excluded = counts.total()
        if not excluded:
            continue
        because = "; ".join(f"{number} with {_in_words(subject, rules[by])}" for by, number in counts.items())
        message = f"{excluded} of {count} legs on {device.upper()} never run: {because}"
        fix = "remove the words that give no leg" if excluded < count else "add words that give at least one leg"
        hits.append(Hit(slot.line, message, fix, Severity.WARNING if excluded == count else None))
    return hits


def _in_words(subject: Subject, rule: SkipRule) -> str:
    """A rule as `'--enable_mkldnn' False and precision fp16`."""
    parts = []
    for axis, wanted in rule.when.items():
        slot = subject.slot(axis)
        key = slot.key.split()[-1].lstrip("-") if slot and slot.key.strip() else "null"
        name = axis if key == "null" else key
        name = "a quantized model" if axis == "quant" and wanted == "True" else name
        name = "a model that is not quantized" if axis == "quant" and wanted == "False" else name
        word = wanted.lstrip("~!").strip("^()").replace("|", " or ")
        negation = "other than " if wanted.startswith("!") else ""
        if wanted.startswith("~^(?!"):
            negation, word = "other than ", wanted[5:].rstrip("$)").replace("$|", " or ").replace("|", " or ")
        parts.append(name if axis == "quant" else f"{name} {negation}{word}")
    return " and ".join(parts)


def _precisions_on_cpu(subject: Subject) -> list[tuple[str, str]]:
    """Precision word of each CPU leg that spec plans, and why no CPU can run it ('' if some can)."""
    dialect = subject.dialect
    if dialect.sequence or not dialect.cpu.uses("precision"):
        return []
    rules = [rule for rule in dialect.skip if rule.device == "cpu" and not rule.defect]
    return [
        (leg["precision"], _impossible(leg["precision"], leg["quant"]))
        for device, leg in _legs(subject)
        if device == "cpu" and "precision" in leg and not any(rule.leaves_out(leg) for rule in rules)
    ]


def _impossible(word: str, quant: str) -> str:
    precision = PRECISIONS.get(word, word).lower()
    if "fp16" in precision:
        return "Paddle has no fp16 inference on CPUs"
    return "the model is not quantized" if "int8" in precision and quant == "False" else ""


def not_run_on_cpu(subject: Subject) -> list[Hit]:
    """Legs that no CPU can run in their precision."""
    slot = subject.slot("precision")
    legs = _precisions_on_cpu(subject)
    counts = Counter((word, why) for word, why in legs if why)
    if slot is None or not counts:
        return []
    because = "; ".join(f"{number} with {word}: {why}" for (word, why), number in counts.items())
    message = f"{counts.total()} of {len(legs)} legs on CPU are not_run: {because}"
    fix = "keep the words if GPUs or a quantized model need them, otherwise remove them"
    return [Hit(slot.line, message, fix, Severity.WARNING if counts.total() == len(legs) else None)]


def cpu_precision(subject: Subject) -> list[Hit]:
    """Legs that need CPU instructions that this machine lacks."""
    slot = subject.slot("precision")
    if slot is None:
        return []
    hits = []
    for word in dict.fromkeys(word for word, why in _precisions_on_cpu(subject) if not why):
        reason = subject.cpu_lacks(word)
        if reason:
            hits.append(
                Hit(
                    slot.line,
                    reason,
                    "run these legs on a node whose CPU has them; on this machine they are not_run",
                )
            )
    return hits


def empty_axis(subject: Subject) -> list[Hit]:
    """An empty list gives no combination."""
    hits: list[Hit] = []
    words = {DEVICES.get(word) for word in subject.items("device")}
    for device, spec in (("cpu", subject.dialect.cpu), ("gpu", subject.dialect.gpu)):
        for axis in spec.axes if device in words else ():
            slot = subject.slot(axis)
            if slot is not None and not slot.items and slot.line not in {hit.line for hit in hits}:
                message = f"'{slot.key}' is empty: no inference runs on {device.upper()}"
                hits.append(Hit(slot.line, message, f"write {slot.key}:null or a list of values"))
    return hits


def model_lists(subject: Subject) -> list[Hit]:
    """Models, their exports and their quantization words belong together by position."""
    models, exports = subject.slot("infer_model"), subject.slot("infer_export")
    if models is None or exports is None or subject.dialect.whole_infer.by_word or is_null(models.value.strip()):
        return []
    count = len(models.items)
    hits = []
    for name in ("infer_export", "infer_quant"):
        slot = subject.slot(name)
        if slot is None or len(slot.items) == count or (name == "infer_quant" and _quant_unread(subject)):
            continue
        message = f"'{slot.key}' has {len(slot.items)} values for {count} models of '{models.key}'"
        hits.append(Hit(slot.line, message, f"use {count} values, separated by |"))
    return hits


def _quant_unread(subject: Subject) -> bool:
    return subject.dialect.whole_infer.quantised or not subject.dialect.whole_infer.quant_listed


RULES = (
    Rule(
        "legs-skipped",
        Severity.NOTE,
        "combinations that the script skips without a line in any log (a warning if none is left)",
        skipped,
    ),
    Rule(
        "cpu-not-run",
        Severity.NOTE,
        "fp16, and int8 of a model that is not quantized, run on CPUs with exit code 0, but in fp32 or bf16; "
        "tipcflow declares these legs `not_run` (a warning if none is left)",
        not_run_on_cpu,
    ),
    Rule(
        "cpu-precision",
        Severity.NOTE,
        "int8 and bf16 need AVX512-VNNI, AVX512-BF16 or AMX; without them the framework silently runs fp32. "
        "Checked on the machine that lint runs on",
        cpu_precision,
    ),
    Rule("infer-list-empty", Severity.ERROR, "an empty list gives no combination", empty_axis),
    Rule("infer-lists", Severity.ERROR, "missing entries count as empty: no export, or no skip rule", model_lists),
)

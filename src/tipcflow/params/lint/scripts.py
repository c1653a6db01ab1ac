"""Rules about defects of suites' scripts that the file cannot work around."""

from tipcflow.params.lint.subject import Hit, Rule, Severity, Subject
from tipcflow.params.values import is_null

_SPEC = "use --compat spec (the default)"


def whole_infer_nothing(subject: Subject) -> list[Hit]:
    """PaddleClas runs inference on listed models only after a quantization."""
    export, model = subject.slot("export1"), subject.slot("infer_model")
    if export is None or model is None or not subject.dialect.has("whole-infer-nothing"):
        return []
    if export.value.strip() not in ("null", "", "False") or is_null(model.value.strip()):
        return []
    return [Hit(model.line, f"'{model.value}' is never used: whole_infer starts no inference", _SPEC)]


def export_weights(subject: Subject) -> list[Hit]:
    """Models whose export gets no weights."""
    slot = subject.slot("weights_key")
    model = subject.slot("model")
    if slot is None or model is None:
        return []
    if not any(part in model.value for part in subject.dialect.no_export_weights):
        return []
    return [Hit(slot.line, f"the export of '{model.value}' gets no weights: '{slot.key}' is dropped", _SPEC)]


def first_epoch(subject: Subject) -> list[Hit]:
    """PaddleVideo exports the weights of epoch 1."""
    slot = subject.slot("epochs")
    if slot is None or not subject.dialect.has("first-epoch-weights") or slot.value.strip() in ("1", "null", ""):
        return []
    message = f"{slot.value} epochs are trained, but the weights of epoch 1 are evaluated and exported"
    return [Hit(slot.line, message, "train one epoch in lite modes; results of whole modes are those of epoch 1")]


def image_dropped(subject: Subject) -> list[Hit]:
    """The script reads a variable that it never sets."""
    slot = subject.slot("image")
    if slot is None or not subject.dialect.has("image-dropped") or is_null(slot.value.strip()):
        return []
    return [Hit(slot.line, f"'{slot.key}={slot.value}' is dropped after a training", _SPEC)]


def quant_unread(subject: Subject) -> list[Hit]:
    """A quantization word that is never read."""
    slot = subject.slot("infer_quant")
    if slot is None or not subject.dialect.has("quant-unread") or "True" not in subject.items("infer_quant"):
        return []
    return [
        Hit(slot.line, "the script never reads the quantization words: no leg is skipped because of them", _SPEC)
    ]


RULES = (
    Rule(
        "whole-infer-nothing",
        Severity.NOTE,
        "PaddleClas without a kl_quant command: whole_infer starts no inference",
        whole_infer_nothing,
    ),
    Rule(
        "export-weights-lost",
        Severity.WARNING,
        "PaddleClas GeneralRecognition and MetaBIN: the export gets no weights",
        export_weights,
    ),
    Rule(
        "first-epoch-weights",
        Severity.NOTE,
        "PaddleVideo: the weights of epoch 1 are evaluated and exported",
        first_epoch,
    ),
    Rule(
        "image-dropped",
        Severity.NOTE,
        "models/mobilenetv3_prod: the script omits the image argument in all training modes",
        image_dropped,
    ),
    Rule("quant-unread", Severity.WARNING, "PaddleGAN: quantization words are not read", quant_unread),
)

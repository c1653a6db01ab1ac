"""Is a model quantized or pruned as declared, by the operators and parameters in the exported files?"""

from tipcflow.check.compression.exports import compressed_exports, plain_exports
from tipcflow.check.context import CheckContext
from tipcflow.check.select import records
from tipcflow.domain import CheckResult, Compression, Facts, OutputFile, Status, Step
from tipcflow.domain.numbers.units import counted, first_names

NAME = "ran.compression"
# A smaller difference of parameters or zeros may be due to another reason, shares.
_LEAST = 0.01
# Zeros among the weights that do not result from a training without pruning, share.
_SPARSE = 0.1


def ran_compression(facts: Facts, context: CheckContext) -> list[CheckResult]:
    """One result per export that passed and declares a compressed model: `failed` if its files contain the model
    that an export without compression would have written."""
    return [_judged(facts, step) for step in compressed_exports(facts)]


def _judged(facts: Facts, step: Step) -> CheckResult:
    export, why = _model(facts, step)
    plain = next((model for other in plain_exports(facts, step) if (model := _model(facts, other)[0])), None)
    if export is None or export.content is None:
        return _result(step, Status.INSUFFICIENT_DATA, f"content of the exported model unknown: {why}")
    values = {
        "model": {"size": export.size, **export.content.model_dump()},
        "compared_with": {"size": plain.size, **plain.content.model_dump()} if plain and plain.content else None,
    }
    judge = _quantized if step.compression is Compression.QUANTIZED else _pruned
    status, reason = judge(export, plain)
    return _result(step, status, reason, **values)


def _result(step: Step, status: Status, reason: str, **values: object) -> CheckResult:
    return CheckResult(check=NAME, status=status, reason=reason, step=step.id, values=values)


def _model(facts: Facts, step: Step) -> tuple[OutputFile | None, str]:
    """The exported model of a step (the largest), otherwise why its content is unknown."""
    models = [output for record in records(facts, step.id) for output in record.outputs if output.content]
    readable = [output for output in models if output.content and not output.content.unread]
    if readable:
        return max(readable, key=lambda output: output.size), ""
    unread = [f"{output.path}: {output.content.unread}" for output in models if output.content]
    return None, first_names(unread) if unread else "no file of parameters (.pdiparams)"


def _quantized(export: OutputFile, plain: OutputFile | None) -> tuple[Status, str]:
    content = export.content
    assert content is not None
    layers = f"{content.quantized_layers} of {counted(content.layers, 'layer')} with weights"
    if not content.quantized_layers:
        what = "fp32" if set(content.types) <= {"float32", "int32", "int64", "bool"} else "not quantized"
        return Status.FAILED, f"declared: quantized; {content.program} is {what}: {layers} have quantized inputs"
    size = f"; {_kilobytes(export)} instead of {_kilobytes(plain)}" if plain else f"; {_kilobytes(export)}"
    return Status.PASS, f"{layers} have quantized inputs{size}"


def _pruned(export: OutputFile, plain: OutputFile | None) -> tuple[Status, str]:
    content = export.content
    assert content is not None
    zeros = content.zeros / content.weights if content.weights and content.zeros >= 0 else 0.0
    if plain is None or plain.content is None:
        if zeros >= _SPARSE:
            return Status.PASS, f"{zeros:.0%} of {content.weights} weights are 0"
        return Status.INSUFFICIENT_DATA, "no export without pruning in this run: fewer parameters are not proven"
    other = plain.content
    before = other.zeros / other.weights if other.weights and other.zeros >= 0 else 0.0
    fewer = 1 - content.parameters / other.parameters if other.parameters else 0.0
    parameters = f"{content.parameters} parameters instead of {other.parameters}"
    if fewer >= _LEAST:
        return Status.PASS, f"{parameters} ({-fewer:.0%}); {_kilobytes(export)} instead of {_kilobytes(plain)}"
    if zeros - before >= _LEAST:
        return Status.PASS, f"{zeros:.0%} of {content.weights} weights are 0, {before:.0%} without pruning"
    return Status.FAILED, f"declared: pruned; {parameters}, {zeros:.1%} zeros instead of {before:.1%}"


def _kilobytes(output: OutputFile) -> str:
    return f"{output.size / 1000:.0f} kB"

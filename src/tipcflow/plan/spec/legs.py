"""Inference legs that a file declares, with the reason for each unsupported leg."""

import re

from tipcflow.domain import Command, ConfigError, Leg
from tipcflow.params.specs import PRECISIONS, Device
from tipcflow.params.values import is_number
from tipcflow.plan.quirks.launch import single_env
from tipcflow.plan.source.groups import Group
from tipcflow.plan.source.hosts import Host
from tipcflow.plan.source.legs import combinations, devices
from tipcflow.plan.source.options import PlanOptions
from tipcflow.plan.source.scope import Scope, leg_scope, with_infer_vars
from tipcflow.plan.spec.feasible import check_precision, unquantized_reason, unsupported_reason

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
# Quoted and escaped text is kept; spaces are collapsed and bare pipes are replaced.
_OUTSIDE = re.compile(r"""("[^"]*"|'[^']*'|\\.)|\s+|\|""")
_NAMES = {
    "mkldnn": "onednn",
    "tensorrt": "tensorrt",
    "threads": "threads",
    "precision": "precision",
    "infer_batch": "batch",
    "input_list": "input",
}


def spec_legs(scope: Scope, *, quant: str, host: Host, group: Group | None, options: PlanOptions) -> list[Leg]:
    """Return all legs of one exported model, CPU and GPU, in the file's order, each command once.

    Raises:
        ConfigError: the file has a device word that is neither CPU nor GPU, or an unknown precision.
    """
    reader = scope.reader
    texts: dict[str, Leg] = {}
    scope = with_infer_vars(scope)
    for word, device in devices(reader):
        if device is None:
            raise ConfigError(
                "unknown inference device",
                file=reader.params.file,
                line=reader.line("device"),
                key=reader.key("device"),
                found=word or "nothing",
                expected="True, gpu, False or cpu",
            )
        for words in combinations(reader, device, quant, keep_defects=False):
            check_precision(words.get("precision", ""), "precision", reader)
            leg = _leg(scope, word, device, words, host, group, options)
            reason = unquantized_reason(device, leg.precision, quant=quant, host=host, options=options)
            if reason and not leg.not_run:
                leg = leg.model_copy(update={"not_run": reason})
            texts.setdefault(leg.command.text, leg)
    return list(texts.values())


def _leg(
    scope: Scope,
    word: str,
    device: Device,
    words: dict[str, str],
    host: Host,
    group: Group | None,
    options: PlanOptions,
) -> Leg:
    dialect = scope.reader.dialect
    spec = dialect.cpu if device == "cpu" else dialect.gpu
    inner = leg_scope(scope, spec, word, words)
    command = Command(text=tidy(inner.render(spec.command)), cwd=dialect.infer_cwd, env=single_env(group, host))
    used = {axis: word for axis, word in words.items() if spec.uses(axis)}
    return make_leg(device, used, command, host, options)


def make_leg(device: Device, words: dict[str, str], command: Command, host: Host, options: PlanOptions) -> Leg:
    """Return a leg from its axes' words, with a reason if `host` cannot run it."""
    precision = PRECISIONS.get(words.get("precision", ""), words.get("precision", ""))
    return Leg(
        id=leg_id(device, words),
        command=command,
        device=device,
        onednn=_flag(words.get("mkldnn", "")),
        tensorrt=_flag(words.get("tensorrt", "")),
        precision=precision,
        threads=_number(words.get("threads", "")),
        batch_size=_number(words.get("infer_batch", "")),
        not_run=unsupported_reason(device, precision, host, options),
    )


def leg_id(device: str, words: dict[str, str]) -> str:
    """Return a leg's id, for example `cpu_onednn_True_threads_6_batch_1_precision_fp32`, without empty axes."""
    parts = [device]
    for axis, word in words.items():
        if _without_null(word):
            parts += [_NAMES.get(axis, axis), _UNSAFE.sub("_", word)]
    return "_".join(parts)


def tidy(text: str) -> str:
    """Return a command for the shell: repeated spaces of missing arguments collapsed, bare `|` replaced."""
    if '"' not in text and "'" not in text and "|" not in text:
        return " ".join(text.split())
    return _OUTSIDE.sub(lambda match: match[1] or ("\\|" if match[0] == "|" else " "), text).strip()


def _without_null(word: str) -> str:
    return "" if word == "null" else word


def _flag(word: str) -> bool | None:
    return {"True": True, "False": False}.get(word)


def _number(word: str) -> int | None:
    return int(word) if is_number(word) else None

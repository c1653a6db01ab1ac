"""Plan comparison: the suite's script (bash) against the file (spec)."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from tipcflow.domain import Plan, Quirk, StepKind
from tipcflow.domain.run.names import StepId
from tipcflow.plan.quirks.catalogue import catalogue
from tipcflow.plan.view.dialect_keys import DialectKey
from tipcflow.plan.view.diff_text import one_folder, plain_text

# Reported once instead of per command: these differences do not affect the model.
EVERYWHERE = (
    "tipcflow stores the output of each command; the script redirects it to a file",
    "one folder per variant, <trainer>_gpus_<ids>_autocast_<precision>_nodes_<n>; the script may use another name",
    "launchers get --log_dir, and on several nodes their own ports; trainings get the run's seed",
)

# Step, leg, index of the node.
Key = tuple[str, str, str]


@dataclass(frozen=True)
class Difference:
    """One differing command: the words of one side only, or `None` if that side has no such command.

    `step` is the step's id without its number of nodes, `node` the 0-based index of the node in the step. `keys`
    are keys of the dialect that explain a difference without a quirk.
    """

    step: str
    leg: str
    node: int
    bash: str | None
    spec: str | None
    reasons: tuple[Quirk, ...] = field(default=())
    keys: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Return the difference for --json."""
        document = {"step": self.step, "leg": self.leg, "node": self.node, "bash": self.bash, "spec": self.spec}
        return {**document, "quirks": [quirk.id for quirk in self.reasons], "dialect_keys": list(self.keys)}


def differences(bash: Plan, spec: Plan, keys: Sequence[DialectKey] = ()) -> list[Difference]:
    """Return the differences of two plans of one file, in the order of `spec`, then of `bash`.

    `keys` are those of the dialect (`dialect_keys`), the reason if there is no quirk.
    """
    left, right = _commands(bash), _commands(spec)
    _drop_renamed(left, right)
    return [
        difference
        for key in dict.fromkeys([*right, *left])
        if (difference := _difference(key, left.get(key), right.get(key), spec.quirks, keys))
    ]


def _difference(
    key: Key, here: str | None, there: str | None, quirks: Sequence[Quirk], keys: Sequence[DialectKey]
) -> Difference | None:
    here_only, there_only = _only(here, there)
    if here is not None and there is not None and not here_only and not there_only:
        return None
    step, leg, node = key
    one_sided = here is None or there is None
    reasons = tuple(quirk for quirk in quirks if _explains(quirk, step, f"{here_only} {there_only}", one_sided))
    if there is not None:
        reasons = tuple(quirk for quirk in reasons if quirk.id != "every-node-infers")
    names = () if reasons else tuple(each.name for each in keys if each.explains(here_only, there_only))
    sides = (None if here is None else here_only, None if there is None else there_only)
    return Difference(step, leg, int(node), *sides, reasons, names)


def _drop_renamed(left: dict[Key, str], right: dict[Key, str]) -> None:
    """Remove commands that both sides have under different names."""
    keys_by_text: dict[str, list[Key]] = {}
    for key, text in left.items():
        if right.get(key) != text:
            keys_by_text.setdefault(text, []).append(key)
    for key in [key for key, text in right.items() if left.get(key) != text]:
        others = keys_by_text.get(right[key])
        if others:
            del left[others.pop(0)], right[key]


def _commands(plan: Plan) -> dict[Key, str]:
    """Return commands by step (without the number of nodes in its name), leg, and node index in the step."""
    commands: dict[Key, str] = {}
    renamed = plan.mode.startswith("benchmark_train") or plan.dialect.endswith("/dy2static")
    for step in plan.steps:
        name = re.sub(r"_nodes_\d+(?=/|$)", "", step.id)
        for place, node in enumerate(step.nodes):
            if node in step.commands:
                text = plain_text(step.commands[node])
                commands[name, "", str(place)] = one_folder(text, step) if renamed else text
        commands.update(
            {(name, leg.id, "0"): plain_text(leg.command, on_gpu=leg.device == "gpu") for leg in step.legs}
        )
    return commands


def _only(here: str | None, there: str | None) -> tuple[str, str]:
    """Return the words of each side that the other lacks, in order."""
    here_words, there_words = Counter((here or "").split()), Counter((there or "").split())
    return _words(here, here_words - there_words), _words(there, there_words - here_words)


def _words(text: str | None, wanted: "Counter[str]") -> str:
    left = Counter(wanted)
    parts = []
    for word in (text or "").split():
        if left[word] > 0:
            left[word] -= 1
            parts.append(word)
    return " ".join(parts)


def _explains(quirk: Quirk, step: str, words: str, one_sided: bool) -> bool:
    """Whether a quirk can explain the differing words of a step."""
    name = StepId.parse(step)
    entry = catalogue()[quirk.id]
    if name.kind_name not in entry.steps:
        return False
    if name.is_profiling or quirk.id == "benchmark-profiling":
        return name.is_profiling and quirk.id == "benchmark-profiling"
    if "gpu" in entry.by and "CUDA_VISIBLE_DEVICES=" in words:
        return True
    if "launch" in entry.by:
        return one_sided or any(word in words for word in ("--ips", "--gpus", "--devices", "launch"))
    if quirk.id.startswith("mode-entry") and any(word.endswith("model_name") for word in quirk.words):
        return (
            name.kind_name != StepKind.TRAIN and not one_sided
        )  # the name of weights, whose key is in no command
    if quirk.id == "trailing-blank" and one_sided:
        return True
    if "key" not in entry.by:
        return True
    names = [*quirk.words, *(word.rpartition(" ")[2] for word in quirk.words)]  # only `a.b` of `-o a.b` differs
    return not one_sided and any(part and part in words for name in names for part in (name, name.split("=")[0]))


def count_compared(bash: Plan, spec: Plan) -> int:
    """Return the number of commands to compare on both sides."""
    return len({**_commands(bash), **_commands(spec)})

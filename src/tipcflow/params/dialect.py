"""A suite's dialect as data: its line map and the texts that its script builds commands from.

Templates hold placeholders, see `tipcflow.plan.scope`: `{name}` is a variable or a slot's value, `{slot=}` the
slot's `key=value` (nothing where either is null), `{slot=name}` the slot's key with another value, and
`{!slot=name}` the same without the null rule.
"""

from functools import cache
from importlib import resources
from typing import Any, Literal

import yaml

from tipcflow.domain import ConfigError, Frozen
from tipcflow.params.layout import Kind, Layout, SlotSpec, load_layout
from tipcflow.params.values import Split

Form = Literal["single", "multi", "nodes"]


class TrainSpec(Frozen):
    """The training command in its three forms, and where its output goes ('' is nowhere)."""

    single: str
    multi: str
    nodes: str
    log: str = ""


class StepSpec(Frozen):
    """The eval or the export command, and where its output goes ('' is nowhere)."""

    command: str
    log: str = ""


class InferSpec(Frozen):
    """Inference on one kind of device: axes as loops, from the outermost to the innermost."""

    axes: tuple[str, ...]
    command: str
    log: str


class SkipRule(Frozen):
    """A combination of words that inference leaves out.

    `when` maps an axis, or `quant`, to the word it must have; `~text` searches, `!text` must differ. `defect`
    says that nothing but the script stands against the combination, so that spec runs it.
    """

    device: Literal["cpu", "gpu"]
    when: dict[str, str]
    defect: bool = False


class CudaSpec(Frozen):
    """When the script sets CUDA_VISIBLE_DEVICES, which it never restores.

    Attributes:
        at_once: a single-GPU entry exports its id when the entry is looked at.
        unset_before_train: it is unset right before training.
        export_before: the steps before which the entry's export is evaluated.
        multi, nodes: what the export of such an entry holds: its first id, all ids, or nothing.
    """

    at_once: bool = False
    unset_before_train: bool = False
    export_before: tuple[Literal["eval", "export", "infer"], ...] = ("infer",)
    multi: Literal["first", "all", "none"] = "first"
    nodes: Literal["first", "all", "none"] = "none"


class TrainerSpec(Frozen):
    """A trainer slot and the export slot that belongs to it.

    `from_norm`: on one node it starts from the weights of the run's last norm training, whatever the file says.
    """

    train: str
    export: str
    quant: bool = False
    from_norm: bool = False


class WholeInferSpec(Frozen):
    """The modes without training: one export per listed model, then inference.

    `model_dir` and `data` are templates for the variables of the same names; `{save_dir}` is the folder of the
    listed model, as dirname has it.
    """

    modes: tuple[str, ...] = ("whole_infer",)
    export: StepSpec
    model_dir: str = "{save_dir}"
    data: str = "{image}"


class ModeSpec(Frozen):
    """What is different in one mode: the script reads the same file by another line map.

    `quant` is the word that replaces the file's quantisation words.
    """

    layout: str
    cut: int = 0
    quant: str = ""


class Dialect(Frozen):
    """One suite's version of params file and script.

    Attributes:
        cut: how many physical lines the script looks at, 0 for all.
        output, save: the run's output folder and a training's folder below it, as templates.
        suffix: what `save` gets at its end, by launch form.
        threshold: longest text of the ips that the script takes for a single node's (a defect).
        launch: launcher words by launch form.
        amp: precision word -> text of the variable `{amp}`.
        autocast_of: trainer name -> precision word in file names, where no slot gives precisions.
        trainers: names of the trainer slots in the order in which the script compares them; `norm` is the rest.
        modes: modes in which another line map counts; `quant` is then the word of `ModeSpec`.
        quirks: ids of the defects that this script has (docs/reference/quirks.md).
    """

    name: str
    suite: str
    layout: str
    split: Split = "first"
    cut: int = 0
    output: str = "./test_tipc/output/{model}/{mode}"
    save: str
    suffix: dict[Form, str] = {}
    threshold: int = 15
    launch: dict[Form, str]
    amp: dict[str, str] = {}
    cuda: CudaSpec = CudaSpec()
    autocast_of: dict[str, str] = {}
    trainers: dict[str, TrainerSpec]
    train: TrainSpec
    weights: str = "{S}/{weights_name}"
    eval: StepSpec
    export: StepSpec
    model_dir: str
    data: str = "{image}"
    cpu: InferSpec
    gpu: InferSpec
    skip: tuple[SkipRule, ...] = ()
    whole_infer: WholeInferSpec
    modes: dict[str, ModeSpec] = {}
    quant: str = ""
    kinds: dict[str, Kind] = {}
    expect: dict[str, str] = {}
    quirks: tuple[str, ...] = ()

    def line_map(self) -> Layout:
        """The layout with this dialect's own kinds and expectations."""
        base = load_layout(self.layout)
        slots = dict(base.slots)
        for name in slots.keys() & self.kinds.keys():
            slots[name] = slots[name].model_copy(update={"kind": self.kinds[name]})
        for name in slots.keys() & self.expect.keys():
            slots[name] = slots[name].model_copy(update={"key": self.expect[name]})
        return base.model_copy(update={"slots": slots})

    def for_mode(self, mode: str) -> "Dialect":
        """The dialect as it reads files in a mode: itself, unless the mode has its own line map."""
        spec = self.modes.get(mode)
        return self.model_copy(update=spec.model_dump()) if spec else self

    def kind(self, slot: str) -> Kind:
        """How a slot's value is meant.

        Raises:
            KeyError: when the layout has no such slot.
        """
        return self.kinds.get(slot) or self.spec(slot).kind

    def spec(self, slot: str) -> SlotSpec:
        """The layout's entry for a slot.

        Raises:
            KeyError: when there is none.
        """
        return load_layout(self.layout).slots[slot]

    def has(self, quirk: str) -> bool:
        """Whether the suite's script has this defect."""
        return quirk in self.quirks


@cache
def known_dialects() -> tuple[str, ...]:
    """The names of all dialects, in alphabetical order."""
    return tuple(sorted(_sources()))


@cache
def load_dialect(name: str) -> Dialect:
    """The dialect of that name, for instance `models/template`.

    Raises:
        ConfigError: there is none of that name; the message lists those there are.
    """
    sources = _sources()
    if name not in sources:
        raise ConfigError(
            "there is no such dialect", key="dialect", found=name, expected=", ".join(known_dialects())
        )
    return Dialect.model_validate(_resolve(name, sources))


def _resolve(name: str, sources: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A dialect's data on top of that of the dialect it extends."""
    data = dict(sources[name])
    base = data.pop("extends", None)
    return _merge(_resolve(base, sources), data) if base else data


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = _merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


@cache
def _sources() -> dict[str, dict[str, Any]]:
    folder = resources.files("tipcflow.params") / "dialects"
    loaded = (
        yaml.safe_load(entry.read_text(encoding="utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(".yaml")
    )
    return {data["name"]: data for data in loaded}

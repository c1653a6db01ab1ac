"""A suite's dialect as data: its line map and the texts that its script builds commands from.

Templates hold placeholders (`tipcflow.plan.source.scope`): `{name}` is a variable or a slot's value, `{slot=}` the
slot's `key=value` (nothing where either is null), `{slot=name}` the slot's key with another value, and
`{!slot=name}` the same without the null rule.
"""

from functools import cache, cached_property
from importlib import resources
from typing import Any, Literal

from tipcflow.config.own_yaml import own_yaml
from tipcflow.domain import ConfigError, Frozen
from tipcflow.params.layout import Kind, Layout, SlotSpec, load_layout
from tipcflow.params.modes import BENCHMARK, TRAINING_MODES
from tipcflow.params.specs import (
    BenchmarkSpec,
    BlocksSpec,
    CudaSpec,
    ExtraSpec,
    Form,
    InferSpec,
    ModelArgs,
    ModeSpec,
    SequenceLoop,
    SequenceSpec,
    SkipRule,
    StepSpec,
    TrainerSpec,
    TrainSpec,
    WholeInferSpec,
)
from tipcflow.params.values import Split

__all__ = ["Dialect", "SkipRule", "family_dialects", "known_dialects", "load_dialect"]


class Dialect(Frozen):
    """One suite's version of params file and script.

    Attributes:
        cut: how many physical lines the script looks at, 0 for all, -1 for none.
        output, save: the run's output folder and a training's folder below it, as templates.
        suffix: what `save` gets at its end, by launch form.
        threshold: longest text of the ips that the script takes for a single node's (a defect).
        count_nodes: whether nodes are counted whenever there are ips, or only when they are launched on.
        launch: launcher words by launch form.
        amp: precision word -> text of the variable `{amp}`.
        by_mode: variable -> part of a mode's name -> value, `*` for all others; a variable hides the slot.
        bash_vars: the same for the script alone, which ignores what the file says; `slot=value` is another
            kind of condition.
        infer_vars: further variables of inference, as templates.
        model_dir_null: where the exported model is when the slot `infer_dir` says null ('' changes nothing).
        model_replace: what the variable `{model_file}` replaces in the model's name.
        to_static: where the arguments of a to_static trainer stand: in a section at the file's tail, found by
            the physical line of its title, or in the slot `train1`.
        norm_alias: another name that means the norm trainer.
        unknown_trainer: what the script does with a trainer's name that no slot has.
        device_clobbered: inference overwrites the variable of the training's device argument with its last
            device word, and the next training of the same group gets that.
        cpu_use_gpu: the device argument's value for a CPU entry, '' for the slot's own.
        autocast_of: trainer name -> precision word in file names, where no slot gives precisions.
        amp_vars: further variables by precision word; those in `benchmark_only` are empty in other modes.
        last_line: key in the file's last line -> argument made of its value, in benchmarks (variable `last_args`).
        model_args: the variable `model_args` for single models.
        trainers: names of the trainer slots in the order in which the script compares them; `norm` is the rest.
        extras: further commands of the script for some files.
        weights_of: part of a model's name -> where its weights are instead.
        weights_fallback: the weights' name that the script takes, then and ever after, when they are missing.
        no_export_weights: parts of the names of models whose export gets no weights (a variable never set).
        exported: what an export after a training leaves, as a pattern; `{model_dir_path}` is what inference gets.
        infer_cwd: the folder that inference runs in.
        family: which other script of the suite this is ('' for training and inference).
        only_modes: the modes that a run of this script may have; empty where it trains and infers.
        sequence, sequence_loop: that script's commands, when it is a mere sequence.
        blocks: the file holds blocks of lines, and the script trains each twice.
        modes: modes in which another line map counts; `quant` is then the word of `ModeSpec`.
        kinds, slots, titles, expect: what differs from the layout; `stops` are numbers of lines that a file may
            have too, because it has no inference part.
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
    count_nodes: Literal["entry", "launch"] = "entry"
    launch: dict[Form, str]
    amp: dict[str, str] = {}
    amp_vars: dict[str, dict[str, str]] = {}
    benchmark_only: tuple[str, ...] = ()
    last_line: dict[str, str] = {}
    model_args: tuple[ModelArgs, ...] = ()
    cuda: CudaSpec = CudaSpec()
    by_mode: dict[str, dict[str, str]] = {}
    bash_vars: dict[str, dict[str, str]] = {}
    infer_vars: dict[str, str] = {}
    model_dir_null: str = ""
    model_replace: dict[str, str] = {}
    to_static: Literal["", "tail", "slot"] = ""
    norm_alias: str = ""
    unknown_trainer: Literal["norm", "skip"] = "norm"
    device_clobbered: bool = False
    cpu_use_gpu: str = ""
    autocast_of: dict[str, str] = {}
    trainers: dict[str, TrainerSpec]
    train: TrainSpec
    weights: str = "{S}/{weights_name}"
    weights_of: dict[str, str] = {}
    weights_fallback: str = ""
    no_export_weights: tuple[str, ...] = ()
    eval: StepSpec
    export: StepSpec
    model_dir: str
    exported: str = "{model_dir_path}/*.pdiparams"
    data: str = "{image}"
    infer_cwd: str = "."
    cpu: InferSpec
    gpu: InferSpec
    skip: tuple[SkipRule, ...] = ()
    whole_infer: WholeInferSpec
    extras: tuple[ExtraSpec, ...] = ()
    benchmark: BenchmarkSpec | None = None
    family: str = ""
    only_modes: tuple[str, ...] = ()
    sequence: tuple[SequenceSpec, ...] = ()
    sequence_loop: SequenceLoop | None = None
    blocks: BlocksSpec | None = None
    modes: dict[str, ModeSpec] = {}
    quant: str = ""
    own_layout: str = ""
    kinds: dict[str, Kind] = {}
    slots: dict[str, SlotSpec] = {}
    titles: tuple[int, ...] = ()
    stops: tuple[int, ...] = ()
    expect: dict[str, str] = {}
    quirks: tuple[str, ...] = ()

    def line_map(self) -> Layout:
        """The layout with this dialect's own slots, kinds and expectations."""
        return self._line_map

    @cached_property
    def _line_map(self) -> Layout:
        """The layout with this dialect's own kinds and expectations."""
        base = load_layout(self.layout)
        slots = {**base.slots, **(self.slots if base.name == self.home else {})}
        for name in slots.keys() & self.kinds.keys():
            slots[name] = slots[name].model_copy(update={"kind": self.kinds[name]})
        for name in slots.keys() & self.expect.keys():
            slots[name] = slots[name].model_copy(update={"key": self.expect[name]})
        titles = (*base.titles, *self.titles) if base.name == self.home else base.titles
        stops = self.stops if base.name == self.home else ()
        return Layout.model_validate({**base.model_dump(), "slots": slots, "titles": titles, "stops": stops})

    @property
    def home(self) -> str:
        """The layout of the dialect's own files, also while it reads them by another one."""
        return self.own_layout or self.layout

    def for_mode(self, mode: str) -> "Dialect":
        """The dialect as it reads files in a mode: itself, unless the mode has its own line map."""
        spec = self.modes.get(mode)
        if spec is None:
            return self
        other = self.model_copy(update={**spec.model_dump(), "own_layout": self.layout})
        for computed in ("_line_map", "_kind_of"):  # the copy has taken this dialect's own along
            other.__dict__.pop(computed, None)
        return other

    def kind(self, slot: str) -> Kind:
        """How a slot's value is meant.

        Raises:
            KeyError: when the layout has no such slot.
        """
        return self._kind_of[slot]

    @cached_property
    def _kind_of(self) -> dict[str, Kind]:
        slots = self.line_map().slots
        return {name: self.kinds.get(name) or spec.kind for name, spec in slots.items()}

    def spec(self, slot: str) -> SlotSpec:
        """The layout's entry for a slot.

        Raises:
            KeyError: when there is none.
        """
        return self.line_map().slots[slot]

    @property
    def run_modes(self) -> tuple[str, ...]:
        """The modes in which its files can be run."""
        if self.only_modes:
            return self.only_modes
        more = [mode for mode in self.whole_infer.modes if mode not in TRAINING_MODES]
        own = [mode for mode in self.modes if mode not in more]
        return (*TRAINING_MODES, *more, *own, *([BENCHMARK] if self.benchmark else []))

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


# Kind of file (see `tipcflow.params.kinds`) -> the families of scripts that may read it.
_FAMILIES = {
    "klquant": ("ptq", "infer_python"),
    "infer_python": ("infer_python", "ptq"),
    "ptq": ("ptq",),
    "paddle2onnx": ("paddle2onnx",),
    "pipeline": ("pipeline",),
    "dy2static": ("dy2static",),
}


@cache
def family_dialects(name: str, kind: str) -> tuple[str, ...]:
    """The dialects of the other scripts of a dialect's suite that may read files of a kind, likeliest first.

    Raises:
        ConfigError: there is no dialect of that name.
    """
    suite = load_dialect(name).suite
    others = [load_dialect(other) for other in known_dialects()]
    mine = [each for each in others if each.family and each.suite == suite]
    return tuple(each.name for family in _FAMILIES.get(kind, ()) for each in mine if each.family == family)


def _resolve(name: str, sources: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A dialect's data on top of that of the dialect it extends."""
    data = dict(sources[name])
    base = data.pop("extends", None)
    return _merge(_resolve(base, sources), data) if base else data


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """`over` on top of `base`, folder by folder; a null takes the base's value away."""
    merged = dict(base)
    for key, value in over.items():
        if value is None:
            merged.pop(key, None)
            continue
        below = merged.get(key)
        merged[key] = _merge(below, value) if isinstance(below, dict) and isinstance(value, dict) else value
    return merged


@cache
def _sources() -> dict[str, dict[str, Any]]:
    folder = resources.files("tipcflow.params") / "dialects"
    loaded = (
        own_yaml(entry.read_text(encoding="utf-8")) for entry in folder.iterdir() if entry.name.endswith(".yaml")
    )
    return {data["name"]: data for data in loaded}

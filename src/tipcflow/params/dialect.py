"""Dialects: a suite's line map and command templates, as data.

Templates hold placeholders (`tipcflow.plan.source.scope`): `{name}` is a variable or a slot's value, `{slot=}` the
slot's `key=value` (nothing where either is null), `{slot=name}` the slot's key with another value, and
`{!slot=name}` the same without the null rule.
"""

from functools import cached_property
from typing import Literal

from tipcflow.domain import Frozen
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

__all__ = ["Dialect", "SkipRule"]


class Dialect(Frozen):
    """One suite's format of params files and script.

    Attributes:
        cut: number of physical lines that the script reads, 0 for all, -1 for none.
        output, save: the run's output folder and a training's folder below it, as templates.
        spec_output: the run's output folder in spec; it must contain the model and the mode.
        suffix: suffix of `save`, by launch form.
        threshold: maximum length of the ips text that the script treats as a single node (a defect).
        count_nodes: whether nodes are counted whenever ips are given, or only for a multi-node launch.
        launch: launcher words by launch form.
        amp: precision word -> text of the variable `{amp}`.
        by_mode: variable -> part of a mode's name -> value, `*` for all other modes; a variable shadows the slot.
        bash_vars: the same for the script only, which ignores the file's value; `slot=value` is also a valid
            condition.
        infer_vars: additional variables of inference, as templates.
        model_dir_null: folder of the exported model if the slot `infer_dir` is null ('' for no change).
        model_replace: replacements in the model's name for the variable `{model_file}`.
        to_static: location of a to_static trainer's arguments: a section at the end of the file, found by the
            physical line of its title, or the slot `train1`.
        norm_alias: an alias of the norm trainer.
        unknown_trainer: the script's behavior for a trainer's name without a slot.
        device_clobbered: inference overwrites the variable of the training's device argument with its last
            device word, which the next training of the same group uses.
        cpu_use_gpu: the device argument's value for a CPU entry, '' for the slot's value.
        autocast_of: trainer name -> precision word in file names, for files without a precision slot.
        amp_vars: additional variables by precision word; those in `benchmark_only` are empty in other modes.
        last_line: key in the file's last line -> argument built from its value, in benchmarks (variable
            `last_args`).
        model_args: the variable `model_args` for single models.
        defaults: slot with a mode table -> the script's value for a mode without an entry.
        added: variables of the training command whose texts are constants of the script, which no line declares.
        trainers: names of the trainer slots in the script's comparison order; `norm` is the fallback.
        extras: additional commands of the script for some files.
        weights_of: part of a model's name -> path of its weights instead of the default.
        weights_fallback: the weights' name that the script uses for the rest of the run after weights are missing.
        weights_if: argument of a training without which it does not write the weights of that name, but those of
            `weights_fallback`.
        no_export_weights: parts of the names of models whose export gets no weights (the script never sets the
            variable).
        exported: pattern of the output of an export after a training; `{model_dir_path}` is the path passed to
            inference.
        infer_cwd: working directory of inference.
        value_lists: options that take all words after them, and whose second use replaces the first: arguments of
            the suite file that begin with such an option are inserted after it.
        family: name of the suite's other script ('' for training and inference).
        only_modes: the modes of this script; empty for the training and inference script.
        sequence, sequence_loop: that script's commands, if it is a plain sequence.
        blocks: the file consists of blocks of lines, and the script trains each block twice.
        modes: modes with another line map; `quant` is then the word of `ModeSpec`.
        kinds, slots, titles, expect: differences from the layout; `stops` are also valid numbers of lines, for
            files without an inference part.
        quirks: ids of this script's defects (docs/reference/quirks.md).
    """

    name: str
    suite: str
    layout: str
    split: Split = "first"
    cut: int = 0
    output: str = "./test_tipc/output/{model}/{mode}"
    spec_output: str = "./test_tipc/output/{model}/{mode}"
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
    defaults: dict[str, str] = {}
    added: tuple[str, ...] = ()
    trainers: dict[str, TrainerSpec]
    train: TrainSpec
    weights: str = "{S}/{weights_name}"
    weights_of: dict[str, str] = {}
    weights_fallback: str = ""
    weights_if: str = ""
    no_export_weights: tuple[str, ...] = ()
    eval: StepSpec
    export: StepSpec
    model_dir: str
    exported: str = "{model_dir_path}/*.pdiparams"
    data: str = "{image}"
    infer_cwd: str = "."
    value_lists: tuple[str, ...] = ()
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
        """Return the layout with this dialect's own slots, kinds and expectations."""
        return self._line_map

    @cached_property
    def _line_map(self) -> Layout:
        """Return the layout with this dialect's own kinds and expectations."""
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
        """Return the layout of the dialect's own files, also while it reads them by another layout."""
        return self.own_layout or self.layout

    def for_mode(self, mode: str) -> "Dialect":
        """Return the dialect for a mode: itself, unless the mode has its own line map."""
        spec = self.modes.get(mode)
        if spec is None:
            return self
        other = self.model_copy(update={**spec.model_dump(), "own_layout": self.layout})
        for computed in ("_line_map", "_kind_of"):  # the copy must not keep this dialect's cached values
            other.__dict__.pop(computed, None)
        return other

    def kind(self, slot: str) -> Kind:
        """Return the kind of a slot's value.

        Raises:
            KeyError: the layout has no such slot.
        """
        return self._kind_of[slot]

    @cached_property
    def _kind_of(self) -> dict[str, Kind]:
        slots = self.line_map().slots
        return {name: self.kinds.get(name) or spec.kind for name, spec in slots.items()}

    def spec(self, slot: str) -> SlotSpec:
        """Return the layout's entry for a slot.

        Raises:
            KeyError: the layout has no entry.
        """
        return self.line_map().slots[slot]

    @property
    def run_modes(self) -> tuple[str, ...]:
        """Return the modes in which the dialect's files can be run."""
        if self.only_modes:
            return self.only_modes
        more = [mode for mode in self.whole_infer.modes if mode not in TRAINING_MODES]
        own = [mode for mode in self.modes if mode not in more]
        return (*TRAINING_MODES, *more, *own, *([BENCHMARK] if self.benchmark else []))

    def has(self, quirk: str) -> bool:
        """Whether the suite's script has this defect."""
        return quirk in self.quirks

"""The parts of a dialect: commands as templates, and when a suite's script runs them."""

import re
from collections.abc import Mapping
from typing import Literal

from tipcflow.domain import Frozen

Form = Literal["single", "multi", "nodes"]
Device = Literal["cpu", "gpu"]

# Words of an inference's device argument; any other is refused by every script.
DEVICES: dict[str, Device] = {"False": "cpu", "cpu": "cpu", "True": "gpu", "gpu": "gpu"}


class TrainSpec(Frozen):
    """The training command in its three forms, and where the output of each goes (absent is nowhere).

    An empty form is one that the script never trains in; spec then takes the form for several nodes.
    `quoted`: as in `StepSpec`.
    """

    single: str
    multi: str
    nodes: str
    log: dict[Form, str] = {}
    quoted: bool = False

    def template(self, form: Form) -> str:
        """The command's template in a form."""
        return {"single": self.single, "multi": self.multi, "nodes": self.nodes}[form]


class StepSpec(Frozen):
    """A command, and where its output goes ('' is nowhere).

    `quoted`: a `|` in the command reaches the shell, where it is a pipe, instead of becoming a blank, and no
    pattern is expanded before the shell sees it. `glued`: the redirection's
    arrow stands at its target. `cwd`: the folder it runs in, relative to the suite's root.
    """

    command: str
    log: str = ""
    quoted: bool = False
    glued: bool = False
    cwd: str = "."


class ExtraSpec(StepSpec):
    """A further command that the script runs before another one, under a condition.

    `model`: part of the model's name; `slot_key`: slot -> the key that it must have. `bare`: it is run as it
    stands, without evaluating a text.
    """

    before: Literal["train", "export"]
    model: str = ""
    slot_key: dict[str, str] = {}
    bare: bool = False


class InferSpec(Frozen):
    """Inference on one kind of device: axes as loops, from the outermost to the innermost.

    `vars` are further variables, as templates, of each combination.
    """

    axes: tuple[str, ...]
    command: str
    log: str
    vars: dict[str, str] = {}


class SkipRule(Frozen):
    """A combination of words that inference leaves out.

    `when` maps an axis, or `quant`, to the word it must have; `~text` searches, `!text` must differ. `defect`
    says that nothing but the script stands against the combination, so that spec runs it.
    """

    device: Literal["cpu", "gpu"]
    when: dict[str, str]
    defect: bool = False

    def leaves_out(self, words: Mapping[str, str]) -> bool:
        """Whether a combination of words (axis -> word, `quant` among them) is left out."""
        return all(_fits(wanted, words.get(axis, "")) for axis, wanted in self.when.items())


def _fits(wanted: str, word: str) -> bool:
    if wanted.startswith("~"):
        return re.search(wanted[1:], word) is not None
    return word != wanted[1:] if wanted.startswith("!") else word == wanted


class CudaSpec(Frozen):
    """When the script sets CUDA_VISIBLE_DEVICES, which it never restores.

    Attributes:
        at_once: a single-GPU entry exports its id when the entry is looked at.
        unset_before_train: it is unset right before training.
        export_before: the steps before which the entry's export is evaluated.
        unset_after: it is unset after inference, or after every variant, inferred or not.
        multi, nodes: what the export of such an entry holds: its first id, all ids, or nothing.
    """

    at_once: bool = False
    unset_before_train: bool = False
    export_before: tuple[Literal["eval", "export", "infer"], ...] = ("infer",)
    multi: Literal["first", "all", "none"] = "first"
    nodes: Literal["first", "all", "none"] = "none"
    unset_after: Literal["infer", "variant"] = "infer"


class TrainerSpec(Frozen):
    """A trainer slot and the export slot that belongs to it.

    `from_norm`: `last`: on one node it starts from the weights of the run's last norm training, whatever the
    file says; `lost`: it should, but the script has lost them and passes none.
    """

    train: str
    export: str
    quant: bool = False
    from_norm: Literal["no", "last", "lost"] = "no"


class WholeInferSpec(Frozen):
    """The modes without training: one export per listed model, then inference.

    Attributes:
        export, model_dir, path, data: templates; `{save_dir}` is the folder of the listed model as dirname has it,
            `path` is what inference gets of the exported model's folder.
        quant_listed: whether the script finds the quantisation words at all.
        by_word: the list holds words, each with its own export slot, instead of models.
        words: mode -> the words that count in it.
        quantised: the one thing done is the command of slot `export1`, then inference on what it leaves.
        then: what spec adds to the export command of `quantised` (the script does it by hand).
        once: there is one export and no list of models.
        null_stops: a model called null ends the script.
        gpus: what stands in log names for the ids.
    """

    modes: tuple[str, ...] = ("whole_infer",)
    export: StepSpec
    model_dir: str = "{save_dir}"
    data: str = "{image}"
    quant_listed: bool = True
    by_word: dict[str, str] = {}
    words: dict[str, tuple[str, ...]] = {}
    quantised: bool = False
    once: bool = False
    null_stops: bool = False
    path: str = "{model_path}"
    then: str = ""
    gpus: str = ""


class SequenceSpec(StepSpec):
    """One command of a script that runs its commands one after the other.

    Attributes:
        infer: whether it is inference, one leg for each combination of its loops; else it exports.
        device: what inference runs on, where no loop says it.
        loops: list slots whose words it is run for, the first outermost; each word is a variable of that name.
        by_word: word of the first loop -> the command, instead of `command`; any other ends the script.
        cuda: word of the last loop -> CUDA_VISIBLE_DEVICES; not where the slot `use_gpu` says False.
        unless: slots; when one of them is null the command is left out.
        needs: slots; when one of them is null spec leaves the command out, and the script runs it all the same.
        around: what the script puts before and behind the command.
        expects: what it leaves, as a template of a path.
    """

    infer: bool = False
    device: Literal["cpu", "gpu"] = "cpu"
    loops: tuple[str, ...] = ()
    by_word: dict[str, str] = {}
    cuda: dict[str, str] = {}
    unless: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    around: tuple[str, str] = ("", "")
    expects: str = ""


class SequenceLoop(Frozen):
    """The whole sequence is run once for each word of a list slot.

    `scripts`: word -> slot of the script that the variable `script` holds; any other word ends the script, and
    for null the commands with `{script}` are left out.
    """

    slot: str
    scripts: dict[str, str]


class ModelArgs(Frozen):
    """Text that the script adds for one model, by its exact name, when the precision is one of `words`."""

    model: str
    words: tuple[str, ...]
    text: str


class ModelAppend(Frozen):
    """Text that the benchmark script puts at a line's end for one model; `{scaled}` is batch x cards x factor."""

    model: str
    line: int
    text: str
    factor: int = 1


class BlocksSpec(Frozen):
    """A file of several blocks of lines, each trained twice, as it is and made static, and the losses compared.

    Attributes:
        lines: how many lines a block has, its title included.
        mode: the mode it is trained in.
        append: text that the norm trainer's script gets in both trainings.
        trainer: the trainer of the second training; '' where it is the same one with `static` behind its script.
        static: see `trainer`.
        env: variables of both trainings.
        setup: whether the last line of a block is a shell command that is run first.
        loss_lines: text of the log lines that hold a loss.
        commands: what runs after each pair, twice each (once per log).
    """

    lines: int = 22
    mode: str = "lite_train_lite_infer"
    append: str = ""
    trainer: str = ""
    static: str = ""
    env: dict[str, str] = {}
    setup: bool = False
    loss_lines: str
    commands: tuple[str, ...] = ()


class BenchmarkSpec(Frozen):
    """How the suite's benchmark_train script rewrites a params file and what it runs with it.

    Attributes:
        section: the lines after the title, in their order: batch, fp, epoch, models, workers, profiler, flags,
            iters; a name that the script does not use is `_`.
        table: values are written as `benchmark_train=value`.
        edits: 1-based physical line -> value, once at the start.
        texts: text -> text, everywhere in the file, once at the start; `{workers}` and the like are filled in.
        append: 1-based physical line -> text put at its end.
        profile_line: physical line of the profiler options.
        devices: device words without a word from outside.
        skip_steps, units: what the analysis is told; units by single and multi.
        loses_model: from the second run on, names lack the model.
        scale_epoch: epochs are multiplied by nodes and cards of the word.
        scale_models: models for which epochs are multiplied by the cards, with or without a word.
        precision_word: with a word, precision -> what stands in the file instead.
        log_precision: precision in the file -> in names.
        model_append: see `ModelAppend`.
        filter_key: key of the file's last line that asks for a filtered log ('' for none).
    """

    section: tuple[str, ...]
    table: bool = True
    edits: dict[int, str] = {3: "python", 24: "null", 30: "null"}
    texts: dict[str, str] = {}
    append: dict[int, str] = {}
    profile_line: int = 13
    devices: tuple[str, ...] = ("N1C4",)
    skip_steps: int = 2
    units: dict[Literal["single", "multi"], str] = {"single": "samples/s", "multi": "images/s"}
    loses_model: bool = False
    scale_epoch: bool = False
    scale_models: tuple[str, ...] = ()
    precision_word: dict[str, str] = {}
    log_precision: dict[str, str] = {}
    model_append: tuple[ModelAppend, ...] = ()
    filter_key: str = ""


class ModeSpec(Frozen):
    """What is different in one mode: the script reads the same file by another line map.

    `quant` is the word that replaces the file's quantisation words.
    """

    layout: str
    cut: int = 0
    quant: str = ""

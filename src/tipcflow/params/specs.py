"""Parts of a dialect: command templates, and the conditions under which a suite's script runs them."""

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import field_validator

from tipcflow.domain import Frozen
from tipcflow.domain.run.names import DeviceWord

Form = Literal["single", "multi", "nodes"]
Device = Literal["cpu", "gpu"]

# Words of an inference's device argument; every script rejects other words.
DEVICES: dict[str, Device] = {"False": "cpu", "cpu": "cpu", "True": "gpu", "gpu": "gpu"}

# Precision of inference by a word that declares whether it is fp16; null declares none.
PRECISIONS = {"True": "fp16", "False": "fp32", "null": ""}


class TrainSpec(Frozen):
    """The training command in its three forms, and the redirection target of each (absent for none).

    The script never uses an empty form; spec then uses the form for several nodes.
    `quoted`, `glued`: as in `StepSpec`. `bash`: the script's own command of a form, if it loses arguments of the
    file.
    """

    single: str
    multi: str
    nodes: str
    log: dict[Form, str] = {}
    quoted: bool = False
    glued: bool = False
    bash: dict[Form, str] = {}

    def script_template(self, form: Form) -> str:
        """Return the template of the script's own command for a form."""
        return self.bash.get(form) or self.template(form)

    def template(self, form: Form) -> str:
        """Return the command's template for a form."""
        return {"single": self.single, "multi": self.multi, "nodes": self.nodes}[form]


class StepSpec(Frozen):
    """A command and its redirection target ('' for none).

    `quoted`: a `|` in the command reaches the shell as a pipe instead of becoming a space, and patterns are not
    expanded before evaluation. `glued`: no space between the redirection operator and its target. `cwd`: the
    working directory, relative to the suite's root.
    """

    command: str
    log: str = ""
    quoted: bool = False
    glued: bool = False
    cwd: str = "."


class ExtraSpec(StepSpec):
    """An additional command that the script runs before another command, under a condition.

    `model`: part of the model's name; `slot_key`: slot -> its required key; `unless`: slots; a null in one of them
    skips the command. `bare`: the script runs it directly, without `eval`.
    """

    before: Literal["train", "export"]
    model: str = ""
    slot_key: dict[str, str] = {}
    unless: tuple[str, ...] = ()
    bare: bool = False


class InferSpec(Frozen):
    """Inference on one type of device: axes as loops, outermost first.

    `vars` are additional variables of each combination, as templates. `bash`: the script's own command, if it
    loses arguments of the file.
    """

    axes: tuple[str, ...]
    command: str
    log: str
    vars: dict[str, str] = {}
    bash: str = ""

    def uses(self, axis: str) -> bool:
        """Whether the words of an axis are in the command."""
        place = re.compile(r"\{[!?]?(?:\w+=)?" + axis + r"=?\}")
        return any(place.search(text) for text in (self.command, *self.vars.values()))


class SkipRule(Frozen):
    """A combination of words that inference skips.

    `when` maps an axis, or `quant`, to its required word; `~text` searches a regular expression,
    `!text` matches any other word. `defect` marks combinations that only the script excludes; spec runs them.
    """

    device: Literal["cpu", "gpu"]
    when: dict[str, str]
    defect: bool = False

    def leaves_out(self, words: Mapping[str, str]) -> bool:
        """Whether a combination of words (axis -> word, including `quant`) is skipped."""
        return all(_fits(wanted, words.get(axis, "")) for axis, wanted in self.when.items())


def _fits(wanted: str, word: str) -> bool:
    if wanted.startswith("~"):
        return re.search(wanted[1:], word) is not None
    return word != wanted[1:] if wanted.startswith("!") else word == wanted


class CudaSpec(Frozen):
    """When the script sets CUDA_VISIBLE_DEVICES; it never restores the value.

    Attributes:
        at_once: a single-GPU entry exports its id as soon as the script reads the entry.
        unset_before_train: the variable is unset directly before training.
        export_before: the steps before which the script evaluates the entry's export.
        unset_after: the variable is unset after inference, or after every variant, with or without inference.
        multi, nodes: the value exported by such an entry: its first id, all ids, or nothing.
    """

    at_once: bool = False
    unset_before_train: bool = False
    export_before: tuple[Literal["eval", "export", "infer"], ...] = ("infer",)
    multi: Literal["first", "all", "none"] = "first"
    nodes: Literal["first", "all", "none"] = "none"
    unset_after: Literal["infer", "variant"] = "infer"


class TrainerSpec(Frozen):
    """A trainer slot and its export slot.

    `from_norm`: `last`: on one node the training starts from the weights of the run's last norm training, and
    ignores the file; `lost`: it should, but the script has lost their path and passes none.
    """

    train: str
    export: str
    quant: bool = False
    from_norm: Literal["no", "last", "lost"] = "no"


class WholeInferSpec(Frozen):
    """The modes without training: one export per listed model, then inference.

    Attributes:
        export, model_dir, path, data: templates; `{save_dir}` is the dirname of the listed model, `path` is the
            exported model's folder as passed to inference.
        quant_listed: whether the script finds the quantization words.
        by_word: the list contains words with one export slot each, instead of models.
        words: mode -> the words that apply in it.
        quantised: the mode runs only the command of slot `export1`, then inference on its output.
        then: text that spec appends to the export command of `quantised` (separate commands in the script).
        once: one export and no list of models.
        export_not_run: the script logs the command of `once` without running it; spec runs it.
        null_stops: a model named null ends the script.
        pretrained: the export that the word True of the slot `infer_export` requests, of weights that the suite's
            preparation downloads; no script runs it.
        gpus: text that replaces the ids in log names.
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
    export_not_run: bool = False
    null_stops: bool = False
    path: str = "{model_path}"
    then: str = ""
    pretrained: str = ""
    gpus: str = ""


class SequenceSpec(StepSpec):
    """One command of a sequential script.

    Attributes:
        infer: whether it is inference, with one leg per combination of its loops; otherwise an export.
        device: the device of inference, if no loop sets it.
        loops: list slots over whose words it loops, outermost first; each word is a variable of that name.
        by_word: word of the first loop -> the command, instead of `command`; any other word ends the script.
        cuda: word of the last loop -> CUDA_VISIBLE_DEVICES; not applied if the slot `use_gpu` is False.
        unless: slots; if one of them is null, the command is skipped.
        needs: slots; if one of them is null, spec skips the command, but the script still runs it.
        around: text that the script adds before and after the command.
        expects: its output, as a path template.
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
    """A loop that runs the whole sequence for each word of a list slot.

    `scripts`: word -> slot whose value is the variable `script`; any other word ends the script, and for null
    the commands with `{script}` are skipped.
    """

    slot: str
    scripts: dict[str, str]


class ModelArgs(Frozen):
    """Text that the script adds for models whose name contains `model`, if the precision is one of `words`."""

    model: str
    words: tuple[str, ...]
    text: str


class ModelAppend(Frozen):
    """Text that the benchmark script appends to a line for models whose name contains `model`.

    `{scaled}` is batch x GPUs x factor.
    """

    model: str
    line: int
    text: str
    factor: int = 1


class BlocksSpec(Frozen):
    """A file of several blocks of lines: each block has a dynamic and a static training whose losses are compared.

    Attributes:
        lines: number of lines of a block, including its title.
        mode: the training mode.
        append: text appended to the norm trainer's script in both trainings.
        trainer: the trainer of the second training; '' for the same trainer with `static` appended to its script.
        static: see `trainer`.
        env: environment variables of both trainings.
        setup: whether the last line of a block is a shell command that runs first.
        loss_lines: text that identifies log lines with a loss.
        commands: commands after each pair of trainings, run once per log.
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
    """How the suite's benchmark_train script rewrites a params file, and the commands that it then runs.

    Attributes:
        section: the lines after the title, in order: batch, fp, epoch, models, workers, profiler, flags, iters;
            `_` marks lines that the script does not use.
        table: values are written as `benchmark_train=value`.
        edits: 1-based physical line -> value, applied once at the start.
        texts: text -> replacement in the whole file, applied once at the start, with placeholders such as
            `{workers}`.
        append: 1-based physical line -> text appended to it.
        profile_line: physical line of the profiler options.
        profiler_quoted: the script writes the profiler options in quotes.
        devices: device words used without a script argument.
        skip_steps, units: arguments of the analysis; units by single and multi.
        loses_model: names lack the model from the second run on.
        scale_epoch: epochs are multiplied by the nodes and GPUs of the word.
        scale_models: parts of the names of models whose epochs are multiplied by the GPUs, with or without a word.
        other_epochs: epochs of all other models, '' for those of the section.
        precision_word: with a word: precision -> replacement in the file.
        log_precision: precision in the file -> precision in names.
        model_append: see `ModelAppend`.
        filter_key: key of the file's last line that enables a filtered log ('' for none).
    """

    section: tuple[str, ...]
    table: bool = True
    edits: dict[int, str] = {3: "python", 24: "null", 30: "null"}
    texts: dict[str, str] = {}
    append: dict[int, str] = {}
    profile_line: int = 13
    profiler_quoted: bool = True
    devices: tuple[str, ...] = ("N1C4",)
    skip_steps: int = 2
    units: dict[Literal["single", "multi"], str] = {"single": "samples/s", "multi": "images/s"}
    loses_model: bool = False
    scale_epoch: bool = False
    scale_models: tuple[str, ...] = ()
    other_epochs: str = ""
    precision_word: dict[str, str] = {}
    log_precision: dict[str, str] = {}
    model_append: tuple[ModelAppend, ...] = ()
    filter_key: str = ""

    @field_validator("devices")
    @classmethod
    def _device_words(cls, words: tuple[str, ...]) -> tuple[str, ...]:
        for word in words:
            DeviceWord.parse(word)
        return words

    def scales(self, model: str) -> bool:
        """Whether the script multiplies this model's epochs by the GPUs."""
        return any(part in model for part in self.scale_models)


class ModeSpec(Frozen):
    """Differences of one mode: the script reads the same file by another line map.

    `quant` is the word that replaces the file's quantization words.
    """

    layout: str
    cut: int = 0
    quant: str = ""

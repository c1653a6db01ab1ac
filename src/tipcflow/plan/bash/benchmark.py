"""Commands of a suite's benchmark_train script: the training script over a params file that it rewrites."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from tipcflow.domain import Command, ConfigError, StepKind
from tipcflow.domain.run.names import PROFILING, DeviceWord
from tipcflow.params import Dialect, read_params
from tipcflow.params.lines import read_lines
from tipcflow.params.modes import BENCHMARK
from tipcflow.params.specs import BenchmarkSpec
from tipcflow.params.values import is_number, split_line, split_list
from tipcflow.plan.bash.script_loops import BashScript
from tipcflow.plan.source.call import Call
from tipcflow.plan.source.files import FileView
from tipcflow.plan.source.scope import ROOT, last_line

_PROBE = "python -c import paddle;print(paddle.version.commit)"
_TITLE = re.compile(r"(?<!\w)train_benchmark_params(?!\w)")
# Kind of a case that trains a static graph; as the only word it selects all such cases.
STATIC_WORD = "dynamicTostatic"


@dataclass(frozen=True)
class _Case:
    """One point of the benchmark's loops. `fp` is the requested precision."""

    batch: str
    precision: str
    fp: str
    trainer: str
    device: str
    run_mode: str
    static: bool

    @property
    def ids(self) -> str:
        """Return the GPU ids of a node; one GPU, if the script's argument has no numbers of nodes and GPUs."""
        word = self.gpus
        return ",".join(str(number) for number in range(word.per_node if word else 1))

    @property
    def gpus(self) -> DeviceWord | None:
        """Return the numbers of nodes and GPUs; None if the script's argument has none."""
        return DeviceWord.parse_or_none(self.device)


def benchmark_commands(text: str, *, file: str, dialect: Dialect, word: str, files: FileView) -> list[Command]:
    """Return every command of a run of the benchmark script, in the form of recorded runs.

    Args:
        text, file: the params file.
        dialect: the suite's dialect.
        word: the script's third argument, for example `dynamic_bs64_fp32_DP_N1C8`; '' for all cases.
        files: the suite's checkout.

    Raises:
        ConfigError: the suite has no benchmark script, or the file has no benchmark section.
    """
    calls = benchmark_calls(text, file=file, dialect=dialect, word=word, files=files, recorded=True)
    return [call.as_command() for call in calls]


def benchmark_calls(
    text: str,
    *,
    file: str,
    dialect: Dialect,
    word: str,
    files: FileView,
    python: str = "python",
    recorded: bool = False,
) -> Iterator[Call]:
    """Return the calls of a run of the benchmark script, with all attributes of each command.

    Args:
        text, file, dialect, word, files: as `benchmark_commands`.
        python: the interpreter that the script writes into the file.
        recorded: for a command that the training script does not evaluate, return the command that started that
            script, as records do.

    Raises:
        ConfigError: as `benchmark_commands`.
    """
    spec = dialect.benchmark
    if spec is None:
        raise ConfigError(
            "this suite has no benchmark script", file=file, key="mode", found=BENCHMARK, expected="another mode"
        )
    spec = spec.model_copy(update={"edits": {**spec.edits, 3: python}})
    return _Benchmark(text, file, dialect, spec, word, files).calls(recorded=recorded)


def case_name(trainer: str, batch: str | int, precision: str, run_mode: str, device: str) -> str:
    """Return the name of a case's variant, for example `norm_train_bs64_fp32_DP_N1C8`."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", f"{trainer}_bs{batch}_{precision}_{run_mode}_{device}")


def edited_script(script: str, spec: BenchmarkSpec, values: dict[str, str]) -> str:
    """Return a trainer's script with the benchmark's edits; `values` are the section's values."""
    for old, new in spec.texts.items():
        script = script.replace(old, new.format(**values))
    return script


class _Benchmark:
    def __init__(
        self, text: str, file: str, dialect: Dialect, spec: BenchmarkSpec, word: str, files: FileView
    ) -> None:
        self.file, self.dialect, self.spec, self.word, self.files = file, dialect, spec, word, files
        self.values, profiler = self._section(text)
        self.profiler = f'"{profiler}"' if spec.profiler_quoted else profiler
        text = edited_script(text, spec, self.values)
        self.lines = text.split("\n")
        self.model = self.model_once = self._model()
        texts = [line.text for line in read_lines(text)]
        self.last = texts[-1] if texts else ""

    def _section(self, text: str) -> tuple[dict[str, str], str]:
        """Return section name -> value, and the profiler line with its key.

        Like the script, use the title's physical line number as an index among the non-empty lines.
        """
        title = next((n for n, line in enumerate(text.split("\n"), start=1) if _TITLE.search(line)), None)
        if title is None:
            raise ConfigError(
                "the file has no section train_benchmark_params",
                file=self.file,
                found="no title train_benchmark_params",
                expected="=====train_benchmark_params===== and its lines",
            )
        lines = [line.text for line in read_lines(text)]
        pairs = {
            name: split_line(lines[title + place], "first") if title + place < len(lines) else ("", "")
            for place, name in enumerate(self.spec.section)
        }
        return {name: pair[1] for name, pair in pairs.items()}, ":".join(pairs["profiler"])

    def _model(self) -> str:
        named = [line for line in self.lines if line != ""]
        return split_line(named[1], self.dialect.split)[1] if len(named) > 1 else ""

    def _edit(self, line: int, value: str) -> None:
        """Replace the value of a physical line, keeping its key."""
        self._set(line, f"{self._line(line).split(':')[0]}:{value}")

    def _line(self, line: int) -> str:
        return self.lines[line - 1] if line <= len(self.lines) else ""

    def _set(self, line: int, text: str) -> None:
        """Replace a physical line; do nothing if the file has no such line."""
        if line <= len(self.lines):
            self.lines[line - 1] = text

    def _extend(self, line: int, text: str) -> None:
        self._set(line, self._line(line) + text)

    def calls(self, *, recorded: bool) -> Iterator[Call]:
        """Yield the calls of the benchmark script, in its order."""
        yield Call(kind=StepKind.PREPARE, text=_PROBE, label="setup")
        for line, value in self.spec.edits.items():
            self._edit(line, value)
        for line, extra in self.spec.append.items():
            self.lines[line - 1] = (self.lines[line - 1] + extra.format(**self.values)).replace(
                "--validate", "", 1
            )
        if self.word.startswith(STATIC_WORD) and "models" not in self.values:
            self.lines = [line.replace("trainer:norm_train", "trainer:to_static_train") for line in self.lines]
        for case in self._cases():
            yield from self._case(case, recorded)

    def _cases(self) -> Iterator[_Case]:
        models = split_list(self.values.get("models", "")) or [""]
        parts = self.word.split("_")
        static = parts[0] == STATIC_WORD
        if len(parts) < 5:
            chosen = [models] if not static else [["to_static_train"] if "models" in self.values else [""]]
            for batch, precision, trainer, device in product(
                split_list(self.values["batch"]),
                split_list(self.values["fp"]),
                chosen[0],
                self.spec.devices,
            ):
                made_static = static or trainer == "to_static_train"
                yield _Case(batch, precision, precision, trainer, device, "DP", made_static)
            return
        batch = re.sub(r"\D", "", parts[1])
        fp = "fp32" if parts[2] == "null" else parts[2]
        precision = self.spec.precision_word.get(fp, fp)
        trainer = ("to_static_train" if static else "norm_train") if "models" in self.values else ""
        yield _Case(batch, precision, fp, trainer, parts[4], parts[3], static)

    def _label(self, case: _Case) -> str:
        trainer = case.trainer or split_line(self._line(15), "first")[1]
        return case_name(trainer, case.batch, case.fp, case.run_mode, case.device)

    def _case(self, case: _Case, recorded: bool) -> Iterator[Call]:
        spec = self.spec
        prefix = f"{BENCHMARK}=" if spec.table else ""
        self._edit(6, case.precision)
        self._edit(9, prefix + case.batch)
        self._edit(7, prefix + self._epoch(case))
        if case.trainer:
            self._edit(15, case.trainer)
        self._append(case)
        single = len(case.ids) <= 1
        self._edit(4, "0" if single else case.ids)
        if single:
            self._set(spec.profile_line, self.profiler)
            yield from self._train("", self._label(case) + PROFILING)
        self._edit(spec.profile_line, "null")
        yield from self._train("" if single or not recorded else self._run(case), self._label(case))
        skip = dict(last_line(self.last)).get(spec.filter_key, "") if spec.filter_key and single else ""
        log = f"{ROOT}/train_log/{self._name(case)}log"
        if skip:
            text = (
                f"python test_tipc/filter_log.py --in_log_path '{log}' --out_log_path '{log}_filtered'"
                f" --skip_iters {skip}"
            )
            yield Call(kind=StepKind.EVAL, text=text, label=self._label(case))
        text = self._analysis(case, single, log + ("_filtered" if skip else ""))
        yield Call(kind=StepKind.EVAL, text=text, label=self._label(case))
        if spec.loses_model:
            self.model = ""

    def _append(self, case: _Case) -> None:
        """Append a model's own text to its line; every case appends it again."""
        for addition in self.spec.model_append:
            if addition.model in self.model_once and is_number(case.batch) and case.gpus:
                scaled = int(case.batch) * case.gpus.devices * addition.factor
                self._extend(addition.line, addition.text.format(scaled=scaled))

    def _epoch(self, case: _Case) -> str:
        epoch, spec = self.values["epoch"], self.spec
        if not (is_number(epoch) and case.gpus):
            return epoch
        if spec.scales(self.model_once):
            return str(int(epoch) * case.gpus.devices)
        if spec.other_epochs:
            return spec.other_epochs
        if spec.scale_epoch and self.word:
            return str(int(epoch) * case.gpus.nodes * case.gpus.devices)
        return epoch

    def _run(self, case: _Case) -> str:
        """Return the command that starts the training script for the measured run."""
        log = f"{ROOT}/train_log/{self._name(case)}log"
        script = "bash test_tipc/test_train_inference_python.sh ./test_tipc/benchmark_train.txt"
        return f"{script} {BENCHMARK} > {log} 2>&1"

    def _train(self, run: str, label: str) -> Iterator[Call]:
        """Yield the training script's commands. If `run` is set, it replaces commands that are not evaluated."""
        params = read_params("\n".join(self.lines), file=self.file, dialect=self.dialect)
        for call in BashScript(params, self.dialect, mode=BENCHMARK, files=self.files).calls():
            yield replace(call, text=run if run and call.bare else call.text, label=label, expects=())

    def _precision(self, case: _Case) -> str:
        return self.spec.log_precision.get(case.precision, case.precision)

    def _name(self, case: _Case) -> str:
        """Return the name of a case's logs without the kind of log."""
        static = "d2sT_" if case.static else ""
        model = f"{self.model}_bs{case.batch}_{self._precision(case)}_{case.run_mode}"
        return f"{self.dialect.suite}_{model}_{case.device}_{static}"

    def _analysis(self, case: _Case, single: bool, log: str) -> str:
        spec, precision = self.spec, self._precision(case)
        model = f"{self.model}_bs{case.batch}_{precision}_{case.run_mode}"
        return (
            f"python /BENCHMARK_ROOT/scripts/analysis.py --filename {log}"
            f" --speed_log_file '{ROOT}/index/{self._name(case)}speed' --model_name {model}"
            f" --base_batch_size {case.batch} --run_mode {case.run_mode} --fp_item {precision} --keyword ips:"
            f" --skip_steps {spec.skip_steps} --device_num {case.device}"
            f" --speed_unit {spec.units['single' if single else 'multi']} --convergence_key loss:"
        )

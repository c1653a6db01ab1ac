"""Benchmark planner: measured trainings with the batch sizes and precisions of a file's benchmark section."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

from tipcflow.domain import Cluster, Command, ConfigError, Launch, Step
from tipcflow.domain.run.names import DeviceWord
from tipcflow.params.modes import BENCHMARK
from tipcflow.params.sections import BENCHMARK as TITLE
from tipcflow.params.sections import BenchmarkSection, benchmark_section
from tipcflow.params.specs import BenchmarkSpec
from tipcflow.params.values import NOTHING
from tipcflow.plan.bash.benchmark import STATIC_WORD, case_name, edited_script
from tipcflow.plan.quirks.benchmark import find_benchmark
from tipcflow.plan.quirks.match import QuirkMatch
from tipcflow.plan.source.call import Point
from tipcflow.plan.source.groups import Group
from tipcflow.plan.source.hosts import Host, hosts_of
from tipcflow.plan.source.options import PlanOptions
from tipcflow.plan.source.reader import Reader
from tipcflow.plan.source.scope import Scope
from tipcflow.plan.source.trainers import Trainer, resolve_trainer
from tipcflow.plan.source.variants import spec_trainers
from tipcflow.plan.spec.legs import tidy
from tipcflow.plan.spec.planner import SpecPlanner

_WORD = re.compile(
    r"(?P<kind>[A-Za-z0-9]+)_bs(?P<batch>\d+)_(?P<fp>[A-Za-z0-9]+)_(?P<run_mode>\w+)_(?P<device>[A-Z0-9]+)"
)
_STATIC = "to_static_train"


@dataclass(frozen=True)
class Case:
    """One training to measure, with the GPUs of `device`."""

    trainer: Trainer
    batch: int
    fp: str
    run_mode: str
    device: DeviceWord

    @property
    def name(self) -> str:
        """Return the variant's name."""
        return case_name(self.trainer.name, self.batch, self.fp, self.run_mode, str(self.device))

    @property
    def group(self) -> Group:
        """Return nodes and GPU ids; several nodes have names, because the file contains no addresses."""
        nodes = self.device.nodes
        ids = tuple(str(number) for number in range(self.device.per_node))
        ips = tuple(f"node{number}" for number in range(1, nodes + 1)) if nodes > 1 else ()
        return Group(
            index=0,
            text=str(self.device),
            ids=ids,
            ips=ips,
            form="nodes" if ips else "multi" if len(ids) > 1 else "single",
            gpus=",".join(ids),
            ips_text=",".join(ips),
        )


class BenchmarkPlanner(SpecPlanner):
    """One measured training per case; nothing is evaluated, exported or inferred."""

    def __init__(self, reader: Reader, word: str, *, cluster: Cluster | None, options: PlanOptions) -> None:
        super().__init__(reader, cluster=cluster, options=options)
        self.word = word
        self.section = self._section()
        self.cases: dict[str, Case] = {}

    @property
    def spec(self) -> BenchmarkSpec:
        """Return the suite's benchmark script specification."""
        spec = self.reader.dialect.benchmark
        if spec is None:
            raise ConfigError(
                "this suite measures no trainings", key="mode", found=BENCHMARK, expected="another mode"
            )
        return spec

    def _section(self) -> BenchmarkSection:
        params = self.reader.params
        section = benchmark_section(params.lines, file=params.file)
        if section is None:
            raise ConfigError(
                "the file has no section train_benchmark_params",
                file=params.file,
                key=TITLE,
                found=f"no title {TITLE}",
                expected=f"====={TITLE}===== and its lines",
            )
        return section

    def body(self) -> Iterator[Step]:
        """Yield one training per case and repeat."""
        for case in self._cases():
            self.cases[case.name] = case
            self.points.append(Point(case.group, self._precision(case.fp), case.trainer, case.name))
        self.groups = list({case.device: case.group for case in self.cases.values()}.values())
        yield from self.training()

    def _cases(self) -> Iterator[Case]:
        if self.word and self.word != STATIC_WORD:
            match = _WORD.fullmatch(self.word)
            device = DeviceWord.parse_or_none(match["device"]) if match else None
            if match is None or device is None:
                raise ConfigError(
                    "invalid benchmark case",
                    key="mode",
                    found=f"{BENCHMARK}:{self.word}",
                    expected=f"{BENCHMARK}:<kind>_bs<batch>_<precision>_<run mode>_N<nodes>C<cards>, for instance "
                    f"{BENCHMARK}:dynamic_bs8_fp32_DP_N1C1",
                )
            static = match["kind"] == STATIC_WORD
            fp = "fp32" if match["fp"] == "null" else match["fp"]
            for trainer in self._trainers(static)[:1]:
                yield Case(trainer, int(match["batch"]), fp, match["run_mode"], device)
            return
        fps = ["fp32" if fp == "null" else fp for fp in self.section.fp]
        trainers = self._trainers(self.word == STATIC_WORD)
        for batch, fp, trainer, word in product(self.section.batch, fps, trainers, self.spec.devices):
            yield Case(trainer, batch, fp, "DP", DeviceWord.parse(word))

    def _trainers(self, static: bool) -> list[Trainer]:
        """Return the to_static trainer if `static`; otherwise the section's trainers, or those of the head."""
        if not static and not self.section.models:
            return spec_trainers(self.reader)
        names = [_STATIC] if static else self.section.models
        trainers = [resolve_trainer(self.reader, name) for name in names]
        for trainer in trainers:
            if not trainer.known or trainer.script in NOTHING:
                raise ConfigError(
                    "no trainer of this name has a script in the file",
                    file=self.reader.params.file,
                    line=self.section.line,
                    key="model_type" if self.section.models else "trainer",
                    found=trainer.name,
                    expected="a trainer of the file's head; a static one needs its own line or section",
                )
        return trainers

    def _precision(self, fp: str) -> str:
        return self.spec.precision_word.get(fp, fp)

    def variant_scope(self, point: Point, host: Host, name: str) -> Scope:
        """Return the scope of a variant, with batch size, epochs and last arguments from the section."""
        scope = super().variant_scope(point, host, name)
        epochs = "" if self.section.epochs is None else str(self.section.epochs)
        wanted = self.reader.dialect.last_line
        last = [wanted[key].format(value) for key, value in self.section.options.items() if key in wanted]
        batch = str(self.cases[point.folder].batch)
        return scope.within(epochs=epochs, batch=batch, last_args=" ".join(last))

    def variant(self, point: Point, repeat: int) -> Iterator[Step]:
        """Yield only the training."""
        name = point.folder + (f"_repeat_{repeat}" if self.options.repeats > 1 else "")
        hosts = hosts_of(point.group, self.cluster)
        scope = self.variant_scope(point, hosts[0], name).within(repeat=str(repeat))
        # A shell script gets no arguments of a measurement but those of `script_arguments`.
        by_script = self.options.launch is Launch.SCRIPT
        script = tidy(point.trainer.script if by_script else self._script(point))
        point = replace(point, trainer=replace(point.trainer, script=script))
        common = {"variant": point.folder, "repeat": repeat}
        after: tuple[str, ...] = ()
        for extra in self.extras("train", point, hosts, scope, name):
            yield extra.model_copy(update=common)
            after = (extra.id,)
        step = self.train_step(point, hosts, scope, name)
        commands = {node: self._flagged(command) for node, command in step.commands.items()}
        more = {"after": after} if after else {}
        yield step.model_copy(update={**common, **more, "commands": commands, "expects": ()})

    def _flagged(self, command: Command) -> Command:
        return command.model_copy(update={"env": {**command.env, **self.section.flags}})

    def _script(self, point: Point) -> str:
        """Return the trainer's script with the suite's edits for a measurement."""
        spec, section, case = self.spec, self.section, self.cases[point.folder]
        values = {"workers": str(section.workers or 0), "iters": str(section.iters or "")}
        script = edited_script(point.trainer.script, spec, values)
        for extra in spec.append.values():
            script = (script + extra.format(**values)).replace("--validate", "", 1)
        cards = len(case.group.ids) * case.group.nodes
        for addition in spec.model_append:
            if addition.model in self.reader.value("model"):
                script += addition.text.format(scaled=case.batch * cards * addition.factor)
        return script

    def find_quirks(self) -> Iterator[QuirkMatch]:
        """Yield deviations of the benchmark script."""
        yield from self.found_on_nodes()
        cases = list(self.cases.values())
        yield from find_benchmark(
            self.reader,
            self.section,
            selected=bool(self.word),
            fps=list(dict.fromkeys(case.fp for case in cases)),
            groups=self.groups,
            count=len(cases),
        )

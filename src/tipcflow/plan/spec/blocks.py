"""Block planner: per block a dynamic and a static training whose losses must be equal."""

from collections.abc import Iterator
from dataclasses import replace

from tipcflow.domain import Cluster, Command, Compat, Step, StepKind
from tipcflow.params.blocks import Block, split_blocks
from tipcflow.params.specs import BlocksSpec
from tipcflow.plan.bash.script import block_variant
from tipcflow.plan.quirks.finders import find_all
from tipcflow.plan.quirks.match import QuirkMatch
from tipcflow.plan.source.call import Point
from tipcflow.plan.source.groups import classify_spec
from tipcflow.plan.source.hosts import Host, hosts_of
from tipcflow.plan.source.options import PlanOptions
from tipcflow.plan.source.reader import Reader
from tipcflow.plan.source.scope import Scope
from tipcflow.plan.source.trainers import resolve_trainer
from tipcflow.plan.source.variants import spec_points, spec_trainers
from tipcflow.plan.spec.planner import SpecPlanner

_LOG, _LOSSES = "output.log", "losses.txt"


class BlockPlanner(SpecPlanner):
    """Planner of one block: two trainings on one device, and the comparison of their losses."""

    def __init__(
        self, block: Block, spec: BlocksSpec, reader: Reader, *, cluster: Cluster | None, options: PlanOptions
    ) -> None:
        super().__init__(reader, cluster=cluster, options=options)
        self.block, self.spec = block, spec

    def body(self) -> Iterator[Step]:
        """Yield both trainings of every trainer and precision, then the comparison."""
        self.groups = [classify_spec(0, "0", file=self.reader.params.file, line=self.reader.line("gpu_list"))]
        trainers = spec_trainers(self.reader)
        yield from self._setup()
        for number, point in enumerate(spec_points(self.reader, self.groups, trainers), start=1):
            pair = self._named(point, static=False), self._named(self._static(point), static=True)
            self.points += pair
            name = self.block.name + (f"_{number}" if number > 1 else "")
            for repeat in range(1, self.options.repeats + 1):
                yield from self._compared(name, pair, repeat)

    def _setup(self) -> Iterator[Step]:
        """Yield the command that some suites have in a block's last line."""
        text = self.block.params.lines[-1].text.strip()
        if self.spec.setup and text not in ("##", "null:null"):
            host = hosts_of(self.groups[0], self.cluster)[0]
            yield self.step(
                id=f"{self.block.name}/setup",
                kind=StepKind.PREPARE,
                nodes=(host.name,),
                commands={host.name: Command(text=text)},
                after=self._before,
            )

    @property
    def _before(self) -> tuple[str, ...]:
        return ("prepare",) if self.options.prepare else ()

    def _named(self, point: Point, *, static: bool) -> Point:
        return replace(point, folder=block_variant(self.block.name, point.folder, static=static))

    def _static(self, point: Point) -> Point:
        """Return the point with the suite's to_static form of its trainer."""
        if self.spec.trainer:
            trainer = resolve_trainer(self.reader, self.spec.trainer)
            return replace(
                point, trainer=trainer, folder=point.folder.replace(point.trainer.name, trainer.name, 1)
            )
        return replace(point, trainer=replace(point.trainer, static=self.spec.static.strip()))

    def _compared(self, block: str, pair: tuple[Point, Point], repeat: int) -> Iterator[Step]:
        tail = f"_repeat_{repeat}" if self.options.repeats > 1 else ""
        host = hosts_of(self.groups[0], self.cluster)[0]
        folders: list[str] = []
        after: list[str] = []
        for point in pair:
            name = point.folder + tail
            scope = self.variant_scope(point, host, name)
            folders.append(scope.get("S"))
            step = self.train_step(point, (host,), scope, name)
            commands = {host.name: self._with_log(step.commands[host.name], folders[-1])}
            step = step.model_copy(update={"commands": commands, "expects": (), "artefacts": ()})
            step = step.model_copy(update={"variant": point.folder, "repeat": repeat})
            after.append(step.id)
            yield step
        yield self.step(
            id=f"{block}{tail}/eval",
            kind=StepKind.EVAL,
            repeat=repeat,
            nodes=(host.name,),
            commands={host.name: Command(text=self._comparison(*folders))},
            after=tuple(after),
            expects=tuple(f"{folder}/{_LOSSES}" for folder in folders),
        )

    def _with_log(self, command: Command, folder: str) -> Command:
        """Return the training command with its output also written to a file for the comparison."""
        text = f"mkdir -p {folder} && set -o pipefail && {command.text} 2>&1 | tee {folder}/{_LOG}"
        return command.model_copy(update={"text": text, "env": {**command.env, **self.spec.env}})

    def _comparison(self, dynamic: str, static: str) -> str:
        """Return a command that fails if a training printed no loss or the two trainings' losses differ."""
        pick = f"grep -F '{self.spec.loss_lines}' \"$1\" | grep -o 'loss: [^ ,]*'"
        parts = [
            f"losses() {{ {pick}; }}",
            *(f"losses {folder}/{_LOG} > {folder}/{_LOSSES}" for folder in (dynamic, static)),
            f"diff {dynamic}/{_LOSSES} {static}/{_LOSSES}",
        ]
        return " && ".join(["set -o pipefail", *parts])

    def train_step(self, point: Point, hosts: tuple[Host, ...], scope: Scope, name: str) -> Step:
        """Return the training step of a point, with the suite's arguments after its script."""
        script = point.trainer.script + self.spec.append
        return super().train_step(
            replace(point, trainer=replace(point.trainer, script=script)), hosts, scope, name
        )


class BlocksPlanner(SpecPlanner):
    """Planner of all blocks of a file, in order."""

    def __init__(self, text: str, reader: Reader, *, cluster: Cluster | None, options: PlanOptions) -> None:
        super().__init__(reader, cluster=cluster, options=options)
        dialect, spec = reader.dialect, reader.dialect.blocks
        self.parts = [
            BlockPlanner(
                block,
                spec,
                Reader(block.params, dialect, mode=reader.mode, compat=Compat.SPEC, files=options.files),
                cluster=cluster,
                options=options,
            )
            for block in split_blocks(text, file=reader.params.file, dialect=dialect)
            if spec
        ]

    def body(self) -> Iterator[Step]:
        """Yield the steps of every block."""
        for part in self.parts:
            yield from part.body()
            self.groups = part.groups
            self.points += part.points

    def find_quirks(self) -> Iterator[QuirkMatch]:
        """Yield the quirks of every block, and deviations of the script per block."""
        yield from self.parts[0].found_on_nodes()
        yield QuirkMatch("losses-as-text", self.parts[0].block.params.lines[0].number)
        for part in self.parts:
            for quirk in find_all(part.reader, part.groups, part.points):
                if quirk.id not in ("no-abort", "train-status"):
                    yield quirk
            listed = part.reader.value("gpu_list")
            if listed != "0":
                yield QuirkMatch("blocks-one-gpu", part.reader.line("gpu_list"), {"text": listed})

    def edits(self, host: Host) -> Iterator[tuple[int, str]]:
        """Yield the interpreter edit of every block."""
        for part in self.parts:
            reader = part.reader
            yield reader.line("python"), f"{reader.key('python')}:{host.python(reader.value('python'))}"

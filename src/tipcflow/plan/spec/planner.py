"""Spec planner: a params file as steps on the nodes of a cluster."""

import shlex
from collections.abc import Iterator

from tipcflow.domain import Cluster, Command, Launch, Step, StepKind
from tipcflow.domain.run.names import StepId
from tipcflow.params.values import NOTHING
from tipcflow.plan.quirks.finders import find_all
from tipcflow.plan.quirks.launch import (
    check_script,
    launcher,
    rank_arguments,
    script_command,
    script_logs,
    single_env,
    train_device,
    train_env,
)
from tipcflow.plan.quirks.listed_models import from_cwd, listed_models
from tipcflow.plan.quirks.match import QuirkMatch
from tipcflow.plan.quirks.servers import server_count
from tipcflow.plan.source.call import Point
from tipcflow.plan.source.extras import extras_for
from tipcflow.plan.source.groups import Group
from tipcflow.plan.source.hosts import Host, hosts_of
from tipcflow.plan.source.options import PlanOptions
from tipcflow.plan.source.reader import Reader
from tipcflow.plan.source.scope import Scope, amp_variables, base_variables, model_name, weights_scope
from tipcflow.plan.source.variants import spec_groups, spec_points, spec_trainers, world_size
from tipcflow.plan.spec.feasible import check_precision, untrainable_reason, without_running
from tipcflow.plan.spec.legs import spec_legs, tidy
from tipcflow.plan.spec.steps import infer_steps, prepared_step


class SpecPlanner:
    """Planner of one file in one mode."""

    def __init__(self, reader: Reader, *, cluster: Cluster | None, options: PlanOptions) -> None:
        self.reader = reader
        self.cluster = cluster
        self.options = options
        variables = {**base_variables(reader), "model": model_name(reader)}
        output = Scope(reader, variables).render(reader.dialect.spec_output)
        self.scope = Scope(reader, {**base_variables(reader), "LP": output})
        self.groups: list[Group] = []
        self.points: list[Point] = []

    @property
    def trains(self) -> bool:
        """Whether the mode trains."""
        return self.reader.mode not in self.reader.dialect.whole_infer.modes

    def steps(self) -> list[Step]:
        """Return all steps: preparation first, then the variants in order."""
        body = list(self.body())
        return [*self._prepare(), *body]

    def body(self) -> Iterator[Step]:
        """Yield the steps after preparation; set `groups` and `points`."""
        if not self.trains:
            yield from self._inference_only()
            return
        self.groups = spec_groups(self.reader)
        self.points = list(spec_points(self.reader, self.groups, spec_trainers(self.reader)))
        yield from self.training()

    def find_quirks(self) -> Iterator[QuirkMatch]:
        """Yield deviations of the suite's script for this file; call after `steps`."""
        yield from find_all(self.reader, self.groups, self.points)
        yield from self.found_on_nodes()

    def found_on_nodes(self) -> Iterator[QuirkMatch]:
        """Yield deviations of the script on this cluster's nodes: it treats every node as a GPU node."""
        for group in self.groups:
            if group.ids and hosts_of(group, self.cluster)[0].device == "cpu":
                count = len(group.ids)
                processes = f"{count} CPU process{'es' if count > 1 else ''}"
                over = ", over gloo," if count * max(1, group.nodes) > 1 else ""
                values = {"text": group.text, "processes": f"{processes}{over}"}
                yield QuirkMatch("cpu-nodes", self.reader.line("gpu_list"), values)

    def edits(self, host: Host) -> Iterator[tuple[int, str]]:
        """Yield (physical line, value) edits that a user makes to start the suite's script on a cluster host."""
        line, reader = self.reader.line, self.reader
        yield line("python"), f"{reader.key('python')}:{host.python(reader.value('python'))}"
        entries = []
        for group in self.groups:
            addresses = ",".join(node.address for node in hosts_of(group, self.cluster))
            entries.append(f"{addresses};{group.gpus}" if group.ips else group.text)
        if entries:
            yield line("gpu_list"), f"{reader.key('gpu_list')}:{'|'.join(entries)}"

    def _prepare(self) -> Iterator[Step]:
        script = self.options.prepare
        if not script:
            return
        widest = max(self.groups, key=lambda group: group.nodes, default=None)
        hosts = hosts_of(widest, self.cluster)
        text = f"bash {script} {shlex.quote(self.reader.params.file)} {self.reader.mode}"
        yield self.step(
            id="prepare",
            kind=StepKind.PREPARE,
            nodes=tuple(host.name for host in hosts),
            commands={host.name: Command(text=text) for host in hosts},
        )

    def training(self) -> Iterator[Step]:
        """Yield the steps of all points and repeats."""
        for point in self.points:
            check_precision(point.autocast, "autocast", self.reader)
            host = hosts_of(point.group, self.cluster)[0]
            reason = untrainable_reason(point.autocast, host, self.options)
            for repeat in range(1, self.options.repeats + 1):
                steps = self.variant(point, repeat)
                yield from (without_running(step, reason) for step in steps) if reason else steps

    def step(self, **fields: object) -> Step:
        """Return a step of the given fields, by default after preparation."""
        return prepared_step(self.options, **fields)

    def variant(self, point: Point, repeat: int) -> Iterator[Step]:
        """Yield the steps of one point: training, evaluation, export, inference."""
        name = point.folder + (f"_repeat_{repeat}" if self.options.repeats > 1 else "")
        hosts = hosts_of(point.group, self.cluster)
        scope = self.variant_scope(point, hosts[0], name).within(repeat=str(repeat))
        common = {"variant": point.folder, "repeat": repeat}
        folder = scope.get("S")
        scope = weights_scope(_with_written_weights(scope, point))
        last = ""
        for extra in self.extras("train", point, hosts, scope, name):
            yield extra.model_copy(update=common)
            last = extra.id
        train = self.train_step(point, hosts, scope, name)
        yield train.model_copy(update={**common, **({"after": (last,)} if last else {})})
        last = train.id
        env = single_env(point.group, hosts[0])
        for kind, script in ((StepKind.EVAL, self.reader.value("eval")), (StepKind.EXPORT, point.trainer.export)):
            if script in NOTHING:
                continue
            for extra in self.extras(kind.value, point, hosts[:1], scope.within(script=script), name):
                yield extra.model_copy(update={**common, "after": (last,)})
                last = extra.id
            spec = self.reader.dialect.eval if kind is StepKind.EVAL else self.reader.dialect.export
            command = Command(text=tidy(scope.within(script=script).render(spec.command)), env=env)
            step = self.step(
                id=f"{name}/{kind.value}",
                kind=kind,
                nodes=(hosts[0].name,),
                commands={hosts[0].name: command},
                after=(last,),
                expects=(self._exported(scope),) if kind is StepKind.EXPORT else (),
                compression=point.trainer.compression if kind is StepKind.EXPORT else None,
                **common,
            )
            last = step.id
            yield step
        if point.trainer.export in NOTHING:
            return
        path = from_cwd(self._model_path(scope), self.reader.dialect.infer_cwd)
        scope = scope.within(model_path=path, data=self._data(scope), LP=folder)
        legs = spec_legs(
            scope, quant=str(point.trainer.quant), host=hosts[0], group=point.group, options=self.options
        )
        yield from infer_steps(name, legs, hosts[0], after=(last,), step=self.step, **common)

    def extras(
        self, before: str, point: Point, hosts: tuple[Host, ...], scope: Scope, name: str
    ) -> Iterator[Step]:
        """Yield the suite's extra commands for this file before a training or an export."""
        kind = StepKind.PREPARE if before == "train" else StepKind.EXPORT
        for place, spec in enumerate(extras_for(self.reader, before), start=1):
            commands = {
                host.name: Command(
                    text=tidy(scope.within(python=host.python(self.reader.value("python"))).render(spec.command)),
                    cwd=spec.cwd,
                    env=single_env(point.group, host),
                )
                for host in hosts
            }
            step = self.step(
                id=str(StepId(name, StepId.before_name(before, place))),
                kind=kind,
                nodes=tuple(commands),
                commands=commands,
            )
            yield step.model_copy(update={"after": ("prepare",) if self.options.prepare else ()})

    def variant_scope(self, point: Point, host: Host, name: str) -> Scope:
        """Return the variables of one variant with folder `name`."""
        scope = Scope(self.reader, self.scope.variables, group=point.group.index)
        return scope.within(
            S=f"{scope.get('LP')}/{name}",
            python=host.python(self.reader.value("python")),
            gpus=point.group.gpus,
            autocast=point.autocast,
            trainer=point.trainer.name,
            **amp_variables(self.reader, point.autocast),
            use_gpu=train_device(scope.get("use_gpu"), host, point.group),
            launch="",
        )

    def train_step(self, point: Point, hosts: tuple[Host, ...], scope: Scope, name: str) -> Step:
        """Return the training step of a point on its hosts."""
        dialect, options, folder = self.reader.dialect, self.options, scope.get("S")
        servers = server_count(point.group, options)
        template = dialect.train.template(point.group.form) or dialect.train.nodes
        commands = {}
        by_script = options.launch is Launch.SCRIPT
        if by_script:
            check_script(point.trainer.script, options, file=self.reader.params.file)
        for host in hosts:
            if by_script:
                text = script_command(point.trainer.script, host, hosts, scope, options)
                commands[host.name] = Command(text=text, env=train_env(point.group, host, hosts, options))
                continue
            inline = point.trainer.static and "{static}" not in template
            inner = scope.within(
                script=f"{point.trainer.script} {point.trainer.static}" if inline else point.trainer.script,
                static=point.trainer.static,
                python=host.python(self.reader.value("python")),
                launch=launcher(point.group, host, hosts, dialect, folder, options),
            )
            text = tidy(inner.render(template))
            if options.seed is not None and options.seed_argument:
                text += " " + options.seed_argument.format(seed=options.seed)
            if options.training_arguments:
                text += " " + options.training_arguments
            if ranks := rank_arguments(point.group, host, hosts, options):
                text += " " + ranks
            commands[host.name] = Command(text=text, env=train_env(point.group, host, hosts, options))
        return self.step(
            id=f"{name}/train",
            kind=StepKind.TRAIN,
            nodes=tuple(commands),
            slots=max(1, len(point.group.ids)),
            commands=commands,
            expects=(scope.get("weights") + "*",),
            artefacts=script_logs(point.group, hosts)
            if by_script
            else (*_launcher_logs(folder, servers), f"{folder}/train.log"),
            world_size=world_size(point.group),
            servers=servers,
        )

    def _model_path(self, scope: Scope) -> str:
        """Return the exported model's path; a null folder name means the save folder itself."""
        inner = scope.within(infer_dir="") if scope.get("infer_dir") in NOTHING else scope
        return inner.render(self.reader.dialect.model_dir).rstrip("/").replace("//", "/")

    def _exported(self, scope: Scope) -> str:
        """Return the pattern of an export's output files."""
        path = self._model_path(scope)
        return scope.within(model_dir_path=path).render(self.reader.dialect.exported)

    def _data(self, scope: Scope) -> str:
        return scope.render(self.reader.dialect.data)

    def _inference_only(self) -> Iterator[Step]:
        host = hosts_of(None, self.cluster)[0]
        base = self.scope.within(python=host.python(self.reader.value("python")), gpus="")
        spec = self.reader.dialect.whole_infer
        for model in listed_models(base):
            after: tuple[str, ...] = ("prepare",) if self.options.prepare else ()
            if model.export:
                command = Command(text=tidy(model.export), env=single_env(None, host))
                step = self.step(
                    id=f"{model.name}/export",
                    kind=StepKind.EXPORT,
                    nodes=(host.name,),
                    commands={host.name: command},
                    expects=(f"{model.folder}/*.pdiparams",),
                    compression=model.compression,
                )
                yield step
                after = (step.id,)
            scope = base.within(model_path=model.path, data=base.render(spec.data))
            legs = spec_legs(scope, quant=model.quant, host=host, group=None, options=self.options)
            yield from infer_steps(model.name, legs, host, after=after, step=self.step)


def _launcher_logs(folder: str, servers: int) -> tuple[str, ...]:
    """Return the patterns of the logs that the launcher writes, one per process."""
    names = ("workerlog", "serverlog") if servers else ("workerlog",)
    return tuple(f"{folder}/launch/{name}.*" for name in names)


def _with_written_weights(scope: Scope, point: Point) -> Scope:
    """Return the scope with the name of the weights that the training writes."""
    dialect = scope.reader.dialect
    written = not dialect.weights_if or dialect.weights_if in f"{point.trainer.script} {point.trainer.static}"
    return scope if written else scope.within(weights_name=scope.render(dialect.weights_fallback))

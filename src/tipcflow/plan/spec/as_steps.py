"""Bash planner: the commands of a suite's script, grouped into the steps of a plan."""

import shlex
from collections import Counter
from collections.abc import Iterator
from itertools import groupby

from tipcflow.domain import Command, Leg, Step, StepKind
from tipcflow.domain.run.names import StepId
from tipcflow.params import Dialect
from tipcflow.params.modes import BENCHMARK
from tipcflow.params.specs import Device
from tipcflow.plan.bash.benchmark import benchmark_calls
from tipcflow.plan.bash.script import script_calls
from tipcflow.plan.source.call import Call
from tipcflow.plan.source.hosts import Host, hosts_of
from tipcflow.plan.source.scope import ROOT
from tipcflow.plan.source.variants import world_size
from tipcflow.plan.spec.legs import make_leg
from tipcflow.plan.spec.planner import SpecPlanner
from tipcflow.plan.spec.steps import infer_steps, prepared_step


class BashPlanner:
    """The steps of a user who starts the suite's script on the cluster's nodes.

    The file's addresses and interpreter are replaced by the cluster's, like a user edits the file.
    """

    def __init__(self, text: str, planner: SpecPlanner, *, word: str = "") -> None:
        """`planner` has planned the file in spec semantics; `word` is the benchmark script's last argument."""
        self.text = text
        self.planner = planner
        self.reader = planner.reader
        self.dialect: Dialect = planner.reader.dialect
        self.cluster = planner.cluster
        self.options = planner.options
        self.word = word
        self.last = ""

    def steps(self) -> list[Step]:
        """Return all steps in the script's order. Evaluation, export and inference run on the first node."""
        widest = max(self.planner.groups, key=lambda group: group.nodes, default=None)
        hosts = hosts_of(widest, self.cluster)
        runs = {host.name: self._calls(host) for host in hosts}
        calls = runs[hosts[0].name]
        steps = list(self._prepare(hosts))
        self.last = steps[-1].id if steps else ""
        for key, group in groupby(range(len(calls)), key=lambda place: calls[place].variant):
            places = list(group)
            chosen = {name: [run[place] for place in places] for name, run in runs.items()}
            for repeat in range(1, self.options.repeats + 1):
                steps += self._variant(key, chosen, hosts, repeat)
                self.last = steps[-1].id
        return steps

    def _calls(self, host: Host) -> list[Call]:
        lines = self.text.split("\n")
        for number, line in self.planner.edits(host) if self.cluster is not None else ():
            lines[number - 1] = line
        text, reader, files = "\n".join(lines), self.reader, self.options.files
        name = reader.params.file
        if reader.mode == BENCHMARK:
            python = host.python("python")
            return list(
                benchmark_calls(text, file=name, dialect=self.dialect, word=self.word, files=files, python=python)
            )
        return list(script_calls(text, file=name, dialect=self.dialect, mode=reader.mode, files=files))

    def _prepare(self, hosts: tuple[Host, ...]) -> Iterator[Step]:
        if self.options.prepare:
            file, mode = shlex.quote(self.reader.params.file), self.reader.mode
            command = Command(text=f"bash {self.options.prepare} {file} {mode}")
            yield self._step(
                id="prepare",
                kind=StepKind.PREPARE,
                nodes=tuple(host.name for host in hosts),
                commands={host.name: command for host in hosts},
            )

    def _step(self, **fields: object) -> Step:
        return prepared_step(self.options, **fields)

    def _variant(
        self, key: str, runs: dict[str, list[Call]], hosts: tuple[Host, ...], repeat: int
    ) -> Iterator[Step]:
        name = key + (f"_repeat_{repeat}" if self.options.repeats > 1 else "")
        first = hosts[0]
        calls = runs[first.name]
        common: dict[str, object] = {"variant": key if calls[0].point else "", "repeat": repeat}
        # Commands outside a training read the output of earlier trainings.
        after: dict[str, object] = {"after": (self.last,)} if calls[0].label and not calls[0].point else {}
        for place, call in enumerate(calls):
            if call.leg:
                continue
            group = call.point.group if call.point and call.kind is StepKind.TRAIN else None
            group_hosts = hosts[: group.nodes] if group else (first,)
            step = self._step(
                id=f"{name}/{_step_name(calls, place)}",
                kind=call.kind,
                nodes=tuple(host.name for host in group_hosts),
                slots=max(1, len(group.ids)) if group else 1,
                commands={host.name: self._command(runs[host.name][place], host) for host in group_hosts},
                expects=tuple(path.replace(ROOT, ".") for path in call.expects),
                artefacts=("log/workerlog.*",) if call.kind is StepKind.TRAIN else (),
                world_size=world_size(group) if group else 0,
                **common,
                **after,
            )
            after = {"after": (step.id,)}
            yield step
        legs = _distinguished([self._leg(call, first) for call in calls if call.leg])
        ends: tuple[str, ...] = after.get("after", ("prepare",) if self.options.prepare else ())  # type: ignore[assignment]
        yield from infer_steps(name, legs, first, after=ends, step=self._step, **common)

    def _command(self, call: Call, host: Host) -> Command:
        env = {} if call.cuda is None else {"CUDA_VISIBLE_DEVICES": call.cuda}
        group = call.point.group if call.point else None
        if host.device == "cpu" and group and call.kind is StepKind.TRAIN and group.ids:
            env = {**env, "CUDA_VISIBLE_DEVICES": group.gpus, "PADDLE_DISTRI_BACKEND": "gloo"}
        here = "$PWD" + "/.." * (call.cwd.count("/") + 1 if call.cwd != "." else 0)
        text = call.text.replace(ROOT, here)
        return Command(text=text, cwd=call.cwd, env=env, log=call.log.replace(ROOT + "/", "./"))

    def _leg(self, call: Call, host: Host) -> Leg:
        device: Device = "cpu" if call.kind is StepKind.INFER_CPU else "gpu"
        words = {axis: word for axis, word in call.leg.items() if axis != "device"}
        return make_leg(device, words, self._command(call, host), host, self.options)


def _distinguished(legs: list[Leg]) -> list[Leg]:
    """Return legs with unique ids: the script runs a value that is listed twice twice."""
    count: Counter[str] = Counter()
    unique = []
    for leg in legs:
        count[leg.id] += 1
        number = count[leg.id]
        unique.append(leg.model_copy(update={"id": f"{leg.id}_again_{number}"}) if number > 1 else leg)
    return unique


def _step_name(calls: list[Call], place: int) -> str:
    """Return the name of a call's step in its variant: its kind, with a number if there are several."""
    call = calls[place]
    taken = sum(1 for other in calls[:place] if (other.kind, other.before) == (call.kind, call.before))
    if call.before:
        return StepId.before_name(call.before, taken + 1)
    return call.kind.value + (f"_{taken + 1}" if taken else "")

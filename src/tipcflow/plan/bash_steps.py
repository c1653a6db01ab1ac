"""The commands of a suite's script, grouped into the steps of a plan."""

import shlex
from collections.abc import Iterator
from itertools import groupby

from tipcflow.domain import Cluster, Command, Leg, Step, StepKind
from tipcflow.params import Dialect, read_params
from tipcflow.plan.bash import BashScript
from tipcflow.plan.call import Call
from tipcflow.plan.groups import Group
from tipcflow.plan.hosts import Host, hosts_of
from tipcflow.plan.legs import Device
from tipcflow.plan.options import PlanOptions
from tipcflow.plan.points import variant_id, world_size
from tipcflow.plan.reader import Reader
from tipcflow.plan.scope import ROOT
from tipcflow.plan.spec_legs import make_leg
from tipcflow.plan.steps import infer_steps, plain_step


class BashPlanner:
    """The steps that a person makes who starts the suite's script on the cluster's nodes.

    The file's addresses and interpreter are replaced by the cluster's, as that person edits the file.
    """

    def __init__(self, text: str, reader: Reader, *, cluster: Cluster | None, options: PlanOptions) -> None:
        self.text = text
        self.reader = reader
        self.dialect: Dialect = reader.dialect
        self.cluster = cluster
        self.options = options

    def steps(self, groups: list[Group]) -> list[Step]:
        """All steps in the script's order. Evaluation, export and inference are those of the first node."""
        widest = max(groups, key=lambda group: group.nodes, default=None)
        hosts = hosts_of(widest, self.cluster)
        runs = {host.name: self._calls(host, groups) for host in hosts}
        calls = runs[hosts[0].name]
        steps = list(self._prepare(hosts))
        for key, group in groupby(range(len(calls)), key=lambda place: _variant(calls[place])):
            places = list(group)
            chosen = {name: [run[place] for place in places] for name, run in runs.items()}
            for repeat in range(1, self.options.repeats + 1):
                steps += self._variant(key, chosen, hosts, repeat)
        return steps

    def _calls(self, host: Host, groups: list[Group]) -> list[Call]:
        lines = self.text.split("\n")
        if self.cluster is not None:
            for slot, value in self._edits(host, groups):
                number = self.reader.line(slot)
                lines[number - 1] = f"{self.reader.key(slot)}:{value}"
        params = read_params("\n".join(lines), file=self.reader.params.file, dialect=self.dialect)
        script = BashScript(params, self.dialect, mode=self.reader.mode, files=self.options.files)
        return list(script.calls())

    def _edits(self, host: Host, groups: list[Group]) -> Iterator[tuple[str, str]]:
        yield "python", host.python(self.reader.value("python"))
        entries = []
        for group in groups:
            addresses = ",".join(each.address for each in hosts_of(group, self.cluster))
            entries.append(f"{addresses};{group.gpus}" if group.ips else group.text)
        if entries:
            yield "gpu_list", "|".join(entries)

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
        first = () if fields["kind"] is StepKind.PREPARE or not self.options.prepare else ("prepare",)
        return plain_step(deadline_s=self.options.step_deadline_s, **{"after": first, **fields})

    def _variant(
        self, key: str, runs: dict[str, list[Call]], hosts: tuple[Host, ...], repeat: int
    ) -> Iterator[Step]:
        name = key + (f"_repeat_{repeat}" if self.options.repeats > 1 else "")
        first = hosts[0]
        calls = runs[first.name]
        common: dict[str, object] = {"variant": key if calls[0].point else "", "repeat": repeat}
        after: dict[str, object] = {}
        for place, call in enumerate(calls):
            if call.kind not in (StepKind.TRAIN, StepKind.EVAL, StepKind.EXPORT):
                continue
            group = call.point.group if call.point and call.kind is StepKind.TRAIN else None
            mine = hosts[: group.nodes] if group else (first,)
            taken = sum(1 for other in calls[:place] if other.kind is call.kind)
            step = self._step(
                id=f"{name}/{call.kind.value}" + (f"_{taken + 1}" if taken else ""),
                kind=call.kind,
                nodes=tuple(host.name for host in mine),
                slots=max(1, len(group.ids)) if group else 1,
                commands={host.name: self._command(runs[host.name][place], host) for host in mine},
                expects=tuple(path.replace(ROOT, ".") for path in call.expects),
                artefacts=("log/workerlog.*",) if call.kind is StepKind.TRAIN else (),
                world_size=world_size(group) if group else 0,
                **common,
                **after,
            )
            after = {"after": (step.id,)}
            yield step
        legs = [self._leg(call, first) for call in calls if call.leg]
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


def _variant(call: Call) -> str:
    if call.point is None:
        return "infer" if call.count == 0 else f"infer_{call.count}"
    return variant_id(call.point.trainer.name, call.point.group, call.point.autocast)

"""Sequence planner: files with a plain sequence of commands (ONNX conversion, pipelines of several models)."""

from collections.abc import Iterator
from itertools import product

from tipcflow.domain import Command, ConfigError, Leg, Step, StepKind
from tipcflow.params.specs import Device, SequenceSpec
from tipcflow.params.values import NOTHING
from tipcflow.plan.quirks.launch import single_env
from tipcflow.plan.quirks.listed_models import own_folder
from tipcflow.plan.source.hosts import Host, hosts_of
from tipcflow.plan.source.legs import sequence_leg
from tipcflow.plan.source.scope import Scope, with_infer_vars
from tipcflow.plan.spec.legs import make_leg, tidy
from tipcflow.plan.spec.planner import SpecPlanner
from tipcflow.plan.spec.steps import infer_steps


class SequencePlanner(SpecPlanner):
    """Exports in order, then inference, per word of the dialect's loop."""

    def body(self) -> Iterator[Step]:
        """Yield the steps of every iteration, without steps whose script is null.

        Raises:
            ConfigError: a list has a word for which the suite has no command.
        """
        host = hosts_of(None, self.cluster)[0]
        scope = self.scope.within(python=host.python(self.reader.value("python")))
        for count, inner in enumerate(self._rounds(scope)):
            yield from self._turn("infer" if count == 0 else f"infer_{count}", with_infer_vars(inner), host)

    def _rounds(self, scope: Scope) -> Iterator[Scope]:
        loop = self.reader.dialect.sequence_loop
        if loop is None:
            yield scope
            return
        words = self.reader.items(loop.slot)
        for word in words:
            inner = own_folder(scope, word, [other for other in words if other in loop.scripts])
            if word == "null":
                yield inner
            elif word in loop.scripts:
                yield inner.within(script=self.reader.value(loop.scripts[word]))
            else:
                raise self._unknown(loop.slot, word, tuple(loop.scripts))

    def _turn(self, name: str, scope: Scope, host: Host) -> Iterator[Step]:
        after: tuple[str, ...] = ("prepare",) if self.options.prepare else ()
        exports = 0
        legs: list[Leg] = []
        for spec in self.reader.dialect.sequence:
            scripts = [self.reader.value(slot) for slot in (*spec.unless, *spec.needs)]
            if "{script}" in spec.command:
                scripts.append(scope.variables.get("script", ""))
            if any(script in NOTHING for script in scripts):
                continue
            if spec.infer:
                legs += self._legs(spec, scope, host)
                continue
            exports += 1
            command = Command(text=tidy(scope.render(spec.command)), cwd=spec.cwd, env=single_env(None, host))
            step = self.step(
                id=f"{name}/export" + (f"_{exports}" if exports > 1 else ""),
                kind=StepKind.EXPORT,
                nodes=(host.name,),
                commands={host.name: command},
                after=after,
                expects=(scope.render(spec.expects),) if spec.expects else (),
            )
            yield step
            after = (step.id,)
        yield from infer_steps(name, legs, host, after=after, step=self.step)

    def _legs(self, spec: SequenceSpec, scope: Scope, host: Host) -> Iterator[Leg]:
        for words in product(*(self.reader.items(slot) for slot in spec.loops)):
            if spec.by_word and words[0] not in spec.by_word:
                raise self._unknown(spec.loops[0], words[0], tuple(spec.by_word))
            inner = scope.within(**dict(zip(spec.loops, words, strict=True)))
            template = spec.by_word[words[0]] if spec.by_word else spec.command
            command = Command(text=tidy(inner.render(template)), cwd=spec.cwd, env=single_env(None, host))
            kind, leg = sequence_leg(spec, words)
            word = leg.pop("device")
            if word not in ("cpu", "gpu"):
                raise self._unknown("device", word, ("cpu", "gpu"))
            device: Device = "gpu" if kind is StepKind.INFER_GPU else "cpu"
            yield make_leg(device, leg, command, host, self.options)

    def _unknown(self, slot: str, word: str, valid: tuple[str, ...]) -> ConfigError:
        return ConfigError(
            "the suite's script does not support this value",
            file=self.reader.params.file,
            line=self.reader.line(slot),
            key=self.reader.key(slot),
            found=word or "nothing",
            expected="one of " + ", ".join(valid),
        )

"""Replica of a suite's script: the same loops and conditions, including defects."""

from collections.abc import Iterator
from itertools import product
from posixpath import dirname, normpath

from tipcflow.domain import Compat, StepKind
from tipcflow.params import Dialect, ParamsFile
from tipcflow.params.limits import check_lists
from tipcflow.params.specs import SequenceSpec, StepSpec
from tipcflow.params.values import NOTHING
from tipcflow.plan.source.call import Call, Point
from tipcflow.plan.source.eval_words import eval_text, runs_python
from tipcflow.plan.source.extras import extras_for
from tipcflow.plan.source.files import FileView
from tipcflow.plan.source.groups import Group, classify_bash
from tipcflow.plan.source.legs import combinations, devices, sequence_leg
from tipcflow.plan.source.reader import Reader
from tipcflow.plan.source.scope import (
    Scope,
    amp_variables,
    base_variables,
    leg_scope,
    weights_scope,
    with_infer_vars,
)
from tipcflow.plan.source.trainers import Trainer, resolve_trainer


class BashScript:
    """One run of a dialect's script over one params file in one mode."""

    def __init__(self, params: ParamsFile, dialect: Dialect, *, mode: str, files: FileView) -> None:
        check_lists(params, dialect)
        self.dialect = dialect
        self.files = files
        self.mode = mode
        self.reader = Reader(params, dialect, mode=mode, compat=Compat.BASH, files=files)
        self.cuda: str | None = None
        self.infer_cwd = dialect.infer_cwd
        self.norm_weights = ""
        self.use_gpu: str | None = None
        scope = Scope(self.reader, base_variables(self.reader))
        self.scope = scope.within(LP=scope.render(dialect.output))
        self.folders: set[str] = set()

    def calls(self) -> Iterator[Call]:
        """Yield the commands in order, restricted to those that start Python, as in the records."""
        if self.dialect.sequence:
            return self._sequence()
        walk = self._whole_infer() if self.mode in self.dialect.whole_infer.modes else self._train()
        return (call for call in walk if runs_python(call.text) and not self._cannot_redirect(call.log, call.cwd))

    def _sequence(self) -> Iterator[Call]:
        """Yield the commands of a script without training or model lists, in order."""
        for count, scope in enumerate(self._rounds(with_infer_vars(self.scope))):
            for spec in self.dialect.sequence:
                left_out = any(self.reader.value(slot) in NOTHING for slot in spec.unless)
                if left_out or ("{script}" in spec.command and "script" not in scope.variables):
                    continue
                for words in product(*(self.reader.items(slot) for slot in spec.loops)):
                    if spec.by_word and words[0] not in spec.by_word:
                        return
                    yield self._build_call(spec, words, scope, count)

    def _rounds(self, scope: Scope) -> Iterator[Scope]:
        """Yield the scope of each iteration of a sequence; an unknown word ends the script."""
        loop = self.dialect.sequence_loop
        for word in self.reader.items(loop.slot) if loop else ():
            if loop and word != "null" and word not in loop.scripts:
                return
            script = {"script": self.reader.value(loop.scripts[word])} if loop and word in loop.scripts else {}
            yield scope.within(**script)
        if loop is None:
            yield scope

    def _build_call(self, spec: SequenceSpec, words: tuple[str, ...], scope: Scope, count: int) -> Call:
        inner = scope.within(**dict(zip(spec.loops, words, strict=True)))
        command = spec.by_word[words[0]] if spec.by_word else spec.command
        self.cuda = None if not words or self.reader.value("use_gpu") == "False" else spec.cuda.get(words[-1])
        step = spec.model_copy(update={"command": spec.around[0] + command + spec.around[1]})
        if not spec.infer:
            return self._call(StepKind.EXPORT, step, inner, count=count)
        kind, leg = sequence_leg(spec, words)
        return self._call(kind, step, inner, count=count, leg=leg)

    def _cannot_redirect(self, log: str, cwd: str) -> bool:
        """Whether a redirection fails: its target, up to the first space, is a folder or in a missing folder.

        A relative target is below the command's working directory. The folders of earlier trainings exist.
        """
        target = log.split(" ")[0]
        output = self.scope.get("LP") + "/"
        if cwd != "." and target.startswith("../"):
            target, output = normpath(f"{cwd}/{target}"), normpath(output) + "/"
        made = (output, *(f"{folder}/" for folder in self.folders))
        missing = not any(path.startswith(dirname(target) + "/") for path in made) and dirname(target) != "/"
        return bool(log) and (target in self.folders or missing)

    def _call(self, kind: StepKind, spec: StepSpec, scope: Scope, **more: object) -> Call:
        """Return the command of a step in its scope, with its redirection, as passed to `eval`."""
        log = scope.render(spec.log)
        arrow = ">" if spec.glued else "> "
        redirect = f" {arrow}{log} 2>&1 " if log else ""
        command = scope.render(spec.command) + redirect
        text = command if spec.quoted else eval_text(command, self.files)
        return Call(kind=kind, text=text, log=log, cwd=spec.cwd, cuda=self.cuda, **more)  # type: ignore[arg-type]

    def _extras(self, before: str, kind: StepKind, scope: Scope, point: Point) -> Iterator[Call]:
        """Yield the extra commands that the script runs for this file before a training or an export."""
        for spec in extras_for(self.reader, before):
            yield self._call(kind, spec, scope, point=point, bare=spec.bare, before=before)

    def _train(self) -> Iterator[Call]:
        reader, dialect = self.reader, self.dialect
        for index, entry in enumerate(reader.items("gpu_list")):
            group = classify_bash(index, entry, dialect)
            self.use_gpu = dialect.cpu_use_gpu if dialect.cpu_use_gpu and entry == "-1" else None
            if group.at_once:
                self.cuda = group.export
            for autocast in reader.items("autocast") if reader.has("autocast") else [""]:
                for name in reader.items("trainers"):
                    trainer = resolve_trainer(reader, name)
                    skipped = dialect.unknown_trainer == "skip" and not trainer.known
                    inline = trainer.static and "{static}" not in dialect.train.single
                    if (trainer.script != "null" or inline) and not skipped:
                        word = autocast or dialect.autocast_of.get(name, "False")
                        yield from self._variant(group, word, trainer)

    def _variant(self, group: Group, autocast: str, trainer: Trainer) -> Iterator[Call]:
        dialect = self.dialect
        base = self._variant_scope(group, autocast, trainer)
        point = Point(group, autocast, trainer, base.get("S"))
        if dialect.cuda.unset_before_train:
            self.cuda = None
        step = StepSpec(
            command=dialect.train.script_template(group.form),
            log=dialect.train.log.get(group.form, ""),
            quoted=dialect.train.quoted,
            glued=dialect.train.glued,
        )
        inline = trainer.static and "{static}" not in step.command
        script = f"{trainer.script}  {trainer.static}" if inline else trainer.script
        scope = base.within(script=script, static=trainer.static)
        if trainer.from_norm != "no" and group.form != "nodes":
            scope = scope.within(pretrained=self.norm_weights if trainer.from_norm == "last" else "")
        base = weights_scope(base)
        yield from self._extras("train", StepKind.PREPARE, scope, point)
        yield self._call(StepKind.TRAIN, step, scope, point=point, expects=(base.get("weights") + "*",))
        if self.files.trainings_leave_files:
            self.folders.add(base.get("S").split(" ")[0])
        base = self._after_training(base)
        if trainer.is_norm:
            self.norm_weights = base.get("weights")
        if self.reader.value("eval") not in NOTHING:
            self._export_cuda(group, "eval")
            scope = base.within(script=self.reader.value("eval"))
            yield self._call(StepKind.EVAL, dialect.eval, scope, point=point)
        if trainer.export not in NOTHING:
            self._export_cuda(group, "export")
            scope = base.within(script=trainer.export)
            yield from self._extras("export", StepKind.EXPORT, scope, point)
            expects = (base.get("S") + "/*.pdiparams",)
            yield self._call(StepKind.EXPORT, dialect.export, scope, point=point, expects=expects)
            self._export_cuda(group, "infer")
            data = "" if dialect.has("image-dropped") else base.render(dialect.data)
            null_dir = dialect.model_dir_null and self.reader.value("infer_dir") == "null"
            path = base.render(dialect.model_dir_null if null_dir else dialect.model_dir)
            scope = base.within(model_path=path, data=data)
            yield from self._infer(scope, str(trainer.quant), point=point)
            self.cuda = None
        if dialect.cuda.unset_after == "variant":
            self.cuda = None

    def _after_training(self, scope: Scope) -> Scope:
        """Return the scope with the path of the weights; a missing file changes their name permanently."""
        fallback = self.dialect.weights_fallback
        blank = " " in scope.get("S")
        if fallback and (blank or not self.files.trainings_leave_files):
            self.scope = self.scope.within(weights_name=scope.render(fallback))
            scope = scope.within(weights_name=self.scope.get("weights_name"))
        return weights_scope(scope)

    def _variant_scope(self, group: Group, autocast: str, trainer: Trainer) -> Scope:
        dialect = self.dialect
        scope = Scope(self.reader, self.scope.variables, group=group.index).within(
            gpus=group.gpus,
            ips=group.ips_text,
            nodes=str(group.nodes),
            autocast=autocast,
            trainer=trainer.name,
            **amp_variables(self.reader, autocast),
        )
        if self.use_gpu is not None:
            scope = scope.within(use_gpu=self.use_gpu)
        bare = scope.render(dialect.save)
        form = group.form
        save = bare + scope.render(dialect.suffix.get("nodes" if group.ips else form, ""))
        scope = scope.within(S=save, bare=bare)
        return scope.within(launch=scope.render(dialect.launch.get(form, "")))

    def _export_cuda(self, group: Group, step: str) -> None:
        if step in self.dialect.cuda.export_before and group.export is not None:
            self.cuda = group.export

    def _infer(self, scope: Scope, quant: str, **where: object) -> Iterator[Call]:
        scope = with_infer_vars(scope)
        for word, device in devices(self.reader):
            if self.dialect.device_clobbered:
                self.use_gpu = word
            if device is None:
                continue
            spec = self.dialect.cpu if device == "cpu" else self.dialect.gpu
            kind = StepKind.INFER_CPU if device == "cpu" else StepKind.INFER_GPU
            for leg in combinations(self.reader, device, quant, keep_defects=True):
                inner = leg_scope(scope, spec, word, leg)
                step = StepSpec(command=spec.bash or spec.command, log=spec.log, cwd=self.infer_cwd)
                yield self._call(kind, step, inner, leg={"device": word, **leg}, **where)

    def _whole_infer(self) -> Iterator[Call]:
        reader, spec = self.reader, self.dialect.whole_infer
        if spec.by_word or spec.quantised or spec.once:
            yield from (
                self._listed_words() if spec.by_word else self._quantised() if spec.quantised else self._once()
            )
            return
        exports, quants = reader.items("infer_export"), reader.items("infer_quant")
        for count, model in enumerate(reader.items("infer_model")):
            if spec.null_stops and model == "null":
                return
            export = exports[count] if count < len(exports) else ""
            listed = quants[count] if count < len(quants) and spec.quant_listed else ""
            scope = self.scope.within(infer_item=model, count=str(count), gpus=spec.gpus)
            path = model
            if export != "null":
                scope = scope.within(script=export, save_dir=dirname(model) or ".")
                yield self._call(StepKind.EXPORT, spec.export, scope, count=count)
                path = scope.render(spec.model_dir)
            path = scope.within(model_path=path).render(spec.path)
            scope = scope.within(model_path=path, data=scope.render(spec.data))
            yield from self._infer(scope, self.dialect.quant or listed, count=count)

    def _once(self) -> Iterator[Call]:
        """Yield one export, then inference."""
        spec = self.dialect.whole_infer
        if not spec.export_not_run:
            yield self._call(StepKind.EXPORT, spec.export, self.scope)
        scope = self.scope.within(model_path=self.scope.render(spec.model_dir), data=self.scope.render(spec.data))
        yield from self._infer(scope, self.dialect.quant)

    def _quantised(self) -> Iterator[Call]:
        """Yield one quantization, then inference in a folder entered by two relative `cd` commands."""
        spec = self.dialect.whole_infer
        if self.reader.value("export1") in (*NOTHING, "False"):
            return
        scope = self.scope.within(gpus=spec.gpus)
        yield self._call(StepKind.EXPORT, spec.export, scope)
        folder = normpath(self.reader.value("infer_model") + "/quant_post_static_model")
        if folder.startswith("../"):  # outside the checkout: both `cd` commands fail
            self.infer_cwd = "."
        elif normpath(f"{folder}/../../{self.infer_cwd}") != self.infer_cwd:
            self.infer_cwd = folder
        scope = scope.within(model_path=scope.render(spec.model_dir), data=scope.render(spec.data))
        yield from self._infer(scope, "True")

    def _listed_words(self) -> Iterator[Call]:
        """Yield the commands of a list of words with one export slot each; an unknown word ends the script."""
        reader, spec = self.reader, self.dialect.whole_infer
        quants, taken = reader.items("infer_quant"), 0
        words = spec.words.get(self.mode, ())
        for count, word in enumerate(reader.items("infer_export")):
            if word != "null" and word not in spec.by_word:
                return
            if word not in words:
                continue
            export = reader.value(spec.by_word[word])
            scope = self.scope.within(count=str(count), gpus=spec.gpus, script=export)
            yield self._call(StepKind.EXPORT, spec.export, scope, count=count)
            quant = quants[taken] if taken < len(quants) else ""
            taken += 1
            scope = scope.within(model_path=scope.render(spec.model_dir), data=scope.render(spec.data))
            yield from self._infer(scope, quant, count=count)

"""What a suite's own script would run: the same loops, the same conditions, defects included."""

from collections.abc import Iterator
from posixpath import dirname

from tipcflow.domain import Compat, StepKind
from tipcflow.params import Dialect, ParamsFile
from tipcflow.params.dialect import StepSpec
from tipcflow.plan.call import Call, Point
from tipcflow.plan.eval_words import eval_text, runs_python
from tipcflow.plan.files import FileView
from tipcflow.plan.groups import Group, classify_bash
from tipcflow.plan.legs import combinations, devices
from tipcflow.plan.reader import Reader
from tipcflow.plan.scope import Scope
from tipcflow.plan.trainers import Trainer, resolve_trainer

# An empty word makes the script's test fail with an error, which counts as false.
_NO_SCRIPT = ("null", "")


class BashScript:
    """One run of a dialect's script over one params file in one mode."""

    def __init__(self, params: ParamsFile, dialect: Dialect, *, mode: str, files: FileView) -> None:
        self.dialect = dialect
        self.files = files
        self.mode = mode
        self.reader = Reader(params, dialect, mode=mode, compat=Compat.BASH, files=files)
        self.cuda: str | None = None
        self.norm_weights = ""
        output = Scope(self.reader, {"mode": mode}).render(dialect.output)
        self.scope = Scope(self.reader, {"mode": mode, "LP": output, "launch": ""})

    def calls(self) -> Iterator[Call]:
        """The commands in order; only those that start Python, as the records have them."""
        walk = self._whole_infer() if self.mode in self.dialect.whole_infer.modes else self._train()
        return (call for call in walk if runs_python(call.text))

    def _call(self, kind: StepKind, spec: StepSpec, scope: Scope, **more: object) -> Call:
        """The command of a step in its scope, with its redirection, as `eval` would get it."""
        log = scope.render(spec.log)
        redirect = f" > {log} 2>&1 " if log else ""
        text = eval_text(scope.render(spec.command) + redirect, self.files)
        return Call(kind=kind, text=text, log=log, cuda=self.cuda, **more)  # type: ignore[arg-type]

    def _train(self) -> Iterator[Call]:
        reader = self.reader
        for index, entry in enumerate(reader.items("gpu_list")):
            group = classify_bash(index, entry, self.dialect)
            if group.at_once:
                self.cuda = group.export
            for autocast in reader.items("autocast") if reader.has("autocast") else [""]:
                for name in reader.items("trainers"):
                    trainer = resolve_trainer(reader, name)
                    if trainer.script != "null":
                        word = autocast or self.dialect.autocast_of.get(name, "False")
                        yield from self._variant(group, word, trainer)

    def _variant(self, group: Group, autocast: str, trainer: Trainer) -> Iterator[Call]:
        dialect = self.dialect
        base = self._variant_scope(group, autocast, trainer)
        point = Point(group, autocast, trainer, base.get("S"))
        if dialect.cuda.unset_before_train:
            self.cuda = None
        step = StepSpec(command=getattr(dialect.train, group.form), log=dialect.train.log)
        scope = base.within(script=trainer.script)
        if trainer.from_norm and group.form != "nodes":
            scope = scope.within(pretrained=self.norm_weights)
        base = base.within(weights=base.render(dialect.weights))
        yield self._call(StepKind.TRAIN, step, scope, point=point, expects=(base.get("weights") + "*",))
        if trainer.is_norm:
            self.norm_weights = base.get("weights")
        if self.reader.value("eval") not in _NO_SCRIPT:
            self._export_cuda(group, "eval")
            scope = base.within(script=self.reader.value("eval"))
            yield self._call(StepKind.EVAL, dialect.eval, scope, point=point)
        if trainer.export not in _NO_SCRIPT:
            self._export_cuda(group, "export")
            scope = base.within(script=trainer.export)
            expects = (base.get("S") + "/*.pdiparams",)
            yield self._call(StepKind.EXPORT, dialect.export, scope, point=point, expects=expects)
            self._export_cuda(group, "infer")
            data = "" if dialect.has("image-dropped") else base.render(dialect.data)
            scope = base.within(model_path=base.render(dialect.model_dir), data=data)
            yield from self._infer(scope, str(trainer.quant), point=point)
            self.cuda = None

    def _variant_scope(self, group: Group, autocast: str, trainer: Trainer) -> Scope:
        dialect = self.dialect
        scope = Scope(self.reader, self.scope.variables, group=group.index).within(
            gpus=group.gpus,
            ips=group.ips_text,
            nodes=str(group.nodes),
            autocast=autocast,
            trainer=trainer.name,
            amp=dialect.amp.get(autocast, " "),
        )
        bare = scope.render(dialect.save)
        form = group.form
        save = bare + scope.render(dialect.suffix.get(form, ""))
        scope = scope.within(S=save, log_base=save.removesuffix(".log"))
        return scope.within(launch=scope.render(dialect.launch.get(form, "")))

    def _export_cuda(self, group: Group, step: str) -> None:
        if step in self.dialect.cuda.export_before and group.export is not None:
            self.cuda = group.export

    def _infer(self, scope: Scope, quant: str, **where: object) -> Iterator[Call]:
        for word, device in devices(self.reader):
            if device is None:
                continue
            spec = self.dialect.cpu if device == "cpu" else self.dialect.gpu
            kind = StepKind.INFER_CPU if device == "cpu" else StepKind.INFER_GPU
            for leg in combinations(self.reader, device, quant, keep_defects=True):
                inner = scope.within(device_word=word, **leg)
                step = StepSpec(command=spec.command, log=spec.log)
                yield self._call(kind, step, inner, leg={"device": word, **leg}, **where)

    def _whole_infer(self) -> Iterator[Call]:
        reader, spec = self.reader, self.dialect.whole_infer
        exports, quants = reader.items("infer_export"), reader.items("infer_quant")
        for count, model in enumerate(reader.items("infer_model")):
            export = exports[count] if count < len(exports) else ""
            quant = self.dialect.quant or (quants[count] if count < len(quants) else "")
            scope = self.scope.within(infer_item=model, count=str(count), model_item=model)
            if export == "null":
                path = model
            else:
                scope = scope.within(script=export, save_dir=dirname(model) or ".")
                yield self._call(StepKind.EXPORT, spec.export, scope, count=count)
                path = scope.render(spec.model_dir)
            scope = scope.within(model_path=path, data=scope.render(spec.data))
            yield from self._infer(scope, quant, count=count)

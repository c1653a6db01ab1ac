"""Models that a file lists for the mode without training, in spec semantics."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from posixpath import basename, dirname, normpath, relpath

from tipcflow.domain import Compression, ConfigError
from tipcflow.params.specs import WholeInferSpec
from tipcflow.params.values import NOTHING
from tipcflow.plan.source.reader import Reader
from tipcflow.plan.source.scope import Scope

# Values of the export script slot that mean no script: some suites have a flag in this slot.
NO_SCRIPT = ("null", "", "True", "False")


@dataclass(frozen=True)
class ListedModel:
    """One model for inference.

    Attributes:
        name: first part of the model's step ids.
        export: the export command, '' if the model is already exported.
        folder: folder of the exported model, relative to the suite's root.
        path: the same folder as passed to inference.
        quant: the word that declares whether the model is quantized.
        compression: what the export declares about its model.
    """

    name: str
    export: str
    folder: str
    path: str
    quant: str
    compression: Compression | None = None


def listed_models(scope: Scope) -> Iterator[ListedModel]:
    """Yield the models that the file lists, without those named null."""
    # A script of its own for quantization need not have words for it.
    quantizes = ("True", "") if scope.reader.dialect.family == "ptq" else ("True",)
    for model in _listed(scope):
        yield replace(model, compression=Compression.QUANTIZED) if model.quant in quantizes else model


def _listed(scope: Scope) -> Iterator[ListedModel]:
    spec = scope.reader.dialect.whole_infer
    if spec.by_word:
        yield from _by_word(scope, spec)
    elif spec.once:
        path = scope.render(spec.model_dir)
        folder = _from_root(path, scope.reader)
        yield ListedModel("infer", scope.render(spec.export.command), folder, path, scope.reader.dialect.quant)
    elif spec.quantised and scope.reader.value("export1") not in NO_SCRIPT:
        inner = scope.within(script=scope.reader.value("export1"))
        path = inner.render(spec.model_dir)
        export = f"{inner.render(spec.export.command)} {inner.render(spec.then)}"
        first = _pretrained_export(scope, spec, scope.reader.value("infer_model"))
        export = f"{first} && {export}" if first else export
        yield ListedModel("infer", export, _from_root(path, scope.reader), path, "True")
    else:
        yield from _by_path(scope, spec)


def _by_path(scope: Scope, spec: WholeInferSpec) -> Iterator[ListedModel]:
    reader = scope.reader
    exports, quants = reader.items("infer_export"), reader.items("infer_quant")
    models = reader.items("infer_model")
    for count, model in enumerate(models):
        if model in NOTHING:
            continue
        script = exports[count] if count < len(exports) else "null"
        quant = reader.dialect.quant or (quants[count] if count < len(quants) else "False")
        inner = scope.within(infer_item=model, count=str(count), save_dir=dirname(model) or ".", script=script)
        folder, export = model, ""
        if script not in NO_SCRIPT and not spec.quantised:
            folder, export = inner.render(spec.model_dir), inner.render(spec.export.command)
        elif script == "True":
            export = _pretrained_export(inner, spec, model)
        path = inner.within(model_path=folder.rstrip("/")).render(spec.path)
        name = "infer" if len(models) == 1 else f"infer_{count}"
        yield ListedModel(name, export, _from_root(folder, reader), path, quant)


def pretrained_weights(reader: Reader) -> str:
    """Return the path, without suffix, of the weights that the file wants exported; '' for none.

    The suite's preparation downloads them from the URL of slot `infer_dir` into the root.
    """
    url = reader.value("infer_dir")
    wanted = reader.dialect.whole_infer.pretrained and "True" in reader.items("infer_export")
    return basename(url).removesuffix(".pdparams") if wanted and url.endswith(".pdparams") else ""


def _pretrained_export(scope: Scope, spec: WholeInferSpec, model: str) -> str:
    """Return the command that exports the pretrained weights to the listed model's folder; '' for none.

    Raises:
        ConfigError: the file wants them exported, but names none.
    """
    reader = scope.reader
    if not spec.pretrained or "True" not in reader.items("infer_export"):
        return ""
    if reader.value("infer_dir") in NOTHING:
        raise ConfigError(
            "the file requests an export of pretrained weights, but names none",
            file=reader.params.file,
            line=reader.line("infer_dir"),
            key=reader.key("infer_dir"),
            found=reader.value("infer_dir") or "nothing",
            expected="a URL of weights (.pdparams), which the suite's preparation downloads",
        )
    weights = pretrained_weights(reader)
    if not weights or reader.value("norm_export") in NO_SCRIPT:
        return ""
    inner = scope.within(weights=weights, save_dir=_from_root(model, reader), script=reader.value("norm_export"))
    return inner.render(spec.pretrained)


def _by_word(scope: Scope, spec: WholeInferSpec) -> Iterator[ListedModel]:
    reader = scope.reader
    quants, words = reader.items("infer_quant"), reader.items("infer_export")
    for count, word in enumerate(words):
        if word not in spec.words.get(reader.mode, ()):
            continue
        own_words = [candidate for candidate in words if candidate in spec.words.get(reader.mode, ())]
        inner = own_folder(scope, word, own_words).within(script=reader.value(spec.by_word[word]))
        path = inner.render(spec.model_dir)
        quant = quants[count] if count < len(quants) else "False"
        yield ListedModel(
            f"infer_{word}", inner.render(spec.export.command), _from_root(path, reader), path, quant
        )


def own_folder(scope: Scope, word: str, words: list[str]) -> Scope:
    """Return the scope of one export of `words`; each of several exports gets its own subfolder."""
    if len(words) < 2:
        return scope
    return scope.within(save_infer=f"{scope.get('save_infer').rstrip('/')}/{word}")


def _from_root(path: str, reader: Reader) -> str:
    """Return an inference path relative to the suite's root, without a trailing slash."""
    cwd = reader.dialect.infer_cwd
    if cwd == "." or path.startswith("/") or not path.startswith("../"):
        return path.rstrip("/") or path
    return normpath(f"{cwd}/{path}")


def from_cwd(path: str, cwd: str) -> str:
    """Return a path, given relative to the suite's root, relative to `cwd`."""
    return path if cwd == "." or path.startswith("/") else relpath(path, cwd)

"""Sections after the head of a params file, found by their titles, with typed lines."""

import re
from collections.abc import Sequence

from tipcflow.domain import ConfigError, Frozen
from tipcflow.params.layout import TITLE
from tipcflow.params.limits import MAX_ALTERNATIVES
from tipcflow.params.lines import TextLine
from tipcflow.params.values import full_value, is_number

BENCHMARK = "train_benchmark_params"
INFERENCE = "infer_benchmark_params"
STATIC = "to_static_train_benchmark_params"
_RANDOM, _NUMPY = "random_infer_input", "numpy_infer_input"
_DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool")
_INPUT = re.compile(r"\{\s*(?P<dtype>\w+)\s*,\s*\[(?P<dims>[\d,\s]*)\]\s*\}")
_SHAPE = re.compile(r"(?:.*/)?(?P<dims>\d+(?:x\d+)*)(?:_\w+)?\.npy")


class Section(Frozen):
    """A title without its `=`, its physical line, and the lines up to the next title."""

    title: str
    line: int
    lines: tuple[TextLine, ...]


class RandomInput(Frozen):
    """One input of a model: its type ('' if a file defines it), and its shape without the batch dimension."""

    dtype: str
    dims: tuple[int, ...]


class InferInputs(Frozen):
    """The line `random_infer_input` or `numpy_infer_input`.

    Attributes:
        line: physical line.
        alternatives: sets of model inputs, each with all inputs in order.
        file: the NumPy file of the input ('' for random inputs); the shape is parsed from the file name.
    """

    line: int
    alternatives: tuple[tuple[RandomInput, ...], ...]
    file: str = ""


class BenchmarkSection(Frozen):
    """The lines of section `train_benchmark_params`, each identified by its key.

    Attributes:
        line: physical line of the title.
        epochs: epochs or iterations, depending on the suite; None for the suite's default.
        models: trainers to measure; empty for those of the file's head.
        workers, repeat, iters: numbers that exist only in some suites.
        profiler: options of a profiled training, '' for none.
        flags: environment variables of the training.
        options: the pairs of the last line, for example `log_iters`.
    """

    line: int
    batch: tuple[int, ...]
    fp: tuple[str, ...] = ("null",)
    epochs: int | None = None
    models: tuple[str, ...] = ()
    workers: int | None = None
    repeat: int | None = None
    iters: int | None = None
    profiler: str = ""
    flags: dict[str, str] = {}
    options: dict[str, str] = {}


def find_section(lines: Sequence[TextLine], title: str) -> Section | None:
    """Return the first section with exactly this title; None if missing (`disable_…` disables a section)."""
    for place, line in enumerate(lines):
        if TITLE.fullmatch(line.text) and line.text.strip("= ") == title:
            below = list(lines[place + 1 :])
            end = next((n for n, other in enumerate(below) if TITLE.fullmatch(other.text)), len(below))
            return Section(title=title, line=line.number, lines=tuple(below[:end]))
    return None


def infer_inputs(lines: Sequence[TextLine], *, file: str) -> InferInputs | None:
    """Return the inputs of an inference benchmark; None if the file declares none.

    Raises:
        ConfigError: the line has another form than `[{dtype,[dims]},…]`, `;` between alternatives, or
            `<shape>.npy`.
    """
    section = find_section(lines, INFERENCE)
    for line in section.lines if section else ():
        key, value = line.text.partition(":")[0].strip(), full_value(line.text).strip()
        if key == _RANDOM:
            sets = tuple(_inputs(part.strip()) for part in value.split(";"))
            if value and all(sets):
                return InferInputs(line=line.number, alternatives=sets)
            raise _wrong(line, file, key, "[{float32,[3,224,224]}], inputs separated by a comma")
        if key == _NUMPY:
            shape = _SHAPE.fullmatch(value)
            if shape:
                random_input = RandomInput(dtype="", dims=tuple(map(int, shape["dims"].split("x"))))
                return InferInputs(line=line.number, alternatives=((random_input,),), file=value)
            raise _wrong(line, file, key, "a file called by its shape, such as 3x640x640.npy")
    return None


def _inputs(text: str) -> tuple[RandomInput, ...]:
    """Return the inputs of one `[…]`; none if the text has another form."""
    inner = text[1:-1].strip() if text.startswith("[") and text.endswith("]") else ""
    matches = list(_INPUT.finditer(inner))
    between = _INPUT.sub("", inner).replace(" ", "")
    if not matches or between != "," * (len(matches) - 1):
        return ()
    inputs = []
    for match in matches:
        dims = [part.strip() for part in match["dims"].split(",")]
        if match["dtype"] not in _DTYPES or not all(is_number(part) for part in dims):
            return ()
        inputs.append(RandomInput(dtype=match["dtype"], dims=tuple(map(int, dims))))
    return tuple(inputs)


def benchmark_section(lines: Sequence[TextLine], *, file: str) -> BenchmarkSection | None:
    """Return the typed section for training benchmarks; None if missing or disabled.

    Raises:
        ConfigError: a line's key is unknown, a number is invalid, or the batch size is missing.
    """
    section = find_section(lines, BENCHMARK)
    if section is None:
        return None
    read: dict[str, object] = {"line": section.line}
    for line in section.lines:
        # One suite separates the profiler's options by `=`.
        key = re.split(r"[:=]" if line.text.startswith("--profiler") else ":", line.text, maxsplit=1)[0].strip()
        field = _FIELDS.get(key)
        if field is None:
            raise _wrong(line, file, key, "one of " + ", ".join(_FIELDS))
        if field:
            read[field] = _typed(field, line, file, key)
    if not read.get("batch"):
        raise ConfigError(
            "the section for benchmarks has no batch size",
            file=file,
            line=section.line,
            key=BENCHMARK,
            found=f"{len(section.lines)} lines",
            expected="batch_size:<number>|<number>",
        )
    return BenchmarkSection.model_validate(read)


# Key -> field; '' marks unused keys.
_FIELDS = {
    "batch_size": "batch",
    "fp_items": "fp",
    "epoch": "epochs",
    "total_iters": "epochs",
    "iters": "epochs",
    "iteration": "epochs",
    "model_type": "models",
    "num_workers": "workers",
    "repeat": "repeat",
    "max-iters": "iters",
    "--profiler_options": "profiler",
    "flags": "flags",
    "log_iters": "options",
    "skip_iters": "options",
    "repeats": "options",
    "run_mode": "",
    "device_num": "",
    "gpu_config": "",
    "cpu_config": "",
}
_NUMBERS = ("epochs", "workers", "repeat", "iters")


def _typed(field: str, line: TextLine, file: str, key: str) -> object:
    value = full_value(line.text).strip()
    if field in ("flags", "options"):
        pairs = [pair for pair in (line.text if field == "options" else value).split(";") if pair.strip()]
        return _pairs(pairs, ":" if field == "options" else "=", line, file, key) if value != "null" else {}
    if field == "profiler":
        return "" if value == "null" else re.sub(r"^--profiler_options[:=]", "", line.text).strip().strip("\"'")
    alternatives = [word.strip() for word in value.split("|")]
    if len(alternatives) > MAX_ALTERNATIVES:
        raise _wrong(line, file, key, f"at most {MAX_ALTERNATIVES} alternatives")
    if field in ("batch", *_NUMBERS):
        if value == "null" and field != "batch":
            return None
        if not all(is_number(word) for word in alternatives) or (field != "batch" and len(alternatives) > 1):
            raise _wrong(line, file, key, "numbers separated by |" if field == "batch" else "one number, or null")
        return tuple(map(int, alternatives)) if field == "batch" else int(value)
    if "" in alternatives:
        raise _wrong(line, file, key, "words separated by |")
    return tuple(alternatives)


def _pairs(pairs: list[str], joint: str, line: TextLine, file: str, key: str) -> dict[str, str]:
    split = [pair.strip().partition(joint) for pair in pairs]
    if not all(name and separator for name, separator, _ in split):
        raise _wrong(line, file, key, f"name{joint}value, separated by ;")
    return {name.strip(): value.strip() for name, _, value in split}


def _wrong(line: TextLine, file: str, key: str, expected: str) -> ConfigError:
    return ConfigError(
        "this line of the section cannot be read",
        file=file,
        line=line.number,
        key=key,
        found=line.text,
        expected=expected,
    )

"""What a suite's files show: framework, seed, units, preparation; each value with its evidence."""

import ast
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tipcflow.cli.importing.suite_file import MOST_BYTES, guess_dialects, logs_of
from tipcflow.domain.numbers.units import counted

# Metrics between 0 and 1, or 0 and 100.
_ACCURACIES = ("top1", "top5", "acc", "mIoU")
_SCRIPT = re.compile(r"[\w./-]+\.py")
_SEED = re.compile(r"add_argument\(\s*(?:['\"]-\w['\"]\s*,\s*)?['\"](--(?:random[-_])?seed)['\"]")
# For scripts that this Python cannot parse.
_IMPORT = re.compile(r"(?m)^\s*(?:import ([^#;\n]+)|from ([\w.]+) import\b)")
_DOWNLOADS = re.compile(r"(?m)^\s*[^#\n]*\b(?:wget|curl)\b")


@dataclass(frozen=True)
class Value:
    """One proposed value.

    Attributes:
        key: of the suite file.
        value: as YAML would have it; None to leave the key out.
        why: evidence, a file with its line or counts.
        unclear: what the user has to decide; '' if nothing.
    """

    key: str
    value: object
    why: str
    unclear: str = ""


def inspect(root: Path, files: Sequence[Path]) -> list[Value]:
    """Propose the values of a suite file.

    Args:
        root: the suite's root.
        files: its params files of training and inference.

    Raises:
        ConfigError: no dialect can be guessed.
    """
    dialects = guess_dialects(root)
    scripts = list(training_scripts(root, files))
    return [
        Value("dialects", [name for name, _ in dialects], ", ".join(f"{name} {why}" for name, why in dialects)),
        _framework(root, scripts),
        _seed(root, scripts),
        _prepare(root),
        *_outside(root, scripts),
        *_logs(root),
        *_predictions(root, files),
    ]


def training_scripts(root: Path, files: Sequence[Path]) -> Iterator[Path]:
    """Scripts of the training commands that exist, in or outside of the root, most frequent first."""
    named = _scripts(files, lambda key: key.endswith("_train"))
    yield from (root / name for name, _ in named.most_common() if (root / name).is_file())


def _scripts(files: Sequence[Path], is_key: Callable[[str], bool]) -> Counter[str]:
    """Return the Python scripts in the values of some keys of params files, with their frequency."""
    counts: Counter[str] = Counter()
    for file in files:
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            key, _, value = line.partition(":")
            if is_key(key) and (match := _SCRIPT.search(value)):
                counts[match[0]] += 1
    return counts


def levels_above(root: Path, scripts: Sequence[Path]) -> int:
    """Number of folders between the root and the folder that also holds the scripts outside of it."""
    names = [os.path.normpath(script.relative_to(root)) for script in scripts]
    return max((Path(name).parts.count("..") for name in names), default=0)


def _outside(root: Path, scripts: Sequence[Path]) -> Iterator[Value]:
    """Values for a suite whose scripts are outside of its root."""
    levels = levels_above(root, scripts)
    if levels:
        script = next(path.relative_to(root) for path in scripts if ".." in path.parts)
        yield Value("whole_repository", True, f"trainings run {script}, outside of the suite's root")
        yield Value("pythonpath", ["/".join([".."] * levels)], "packages of the repository")


def _text(path: Path) -> str:
    with path.open("rb") as file:
        return file.read(MOST_BYTES).decode("utf-8", "replace")


def _framework(root: Path, scripts: Sequence[Path]) -> Value:
    for path in scripts:
        modules, name = _imported(_text(path)), path.relative_to(root)
        if "torch" in modules:
            return Value("framework", "torch", f"{name} imports torch")
        if "paddle" in modules:
            return Value("framework", None, f"{name} imports paddle, the default")
    return Value("framework", None, "no training script imports paddle or torch directly; paddlepaddle is assumed")


def _imported(text: str) -> set[str]:
    """Return the top-level packages that a script imports."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the suite's code, such as invalid escapes
            nodes = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        statements = _IMPORT.findall(text)
        names = [name.split()[0] for modules, _ in statements for name in modules.split(",") if name.strip()]
        names += [module for _, module in statements if module]
    else:
        names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return {name.partition(".")[0] for name in names}


def _seed(root: Path, scripts: Sequence[Path]) -> Value:
    for path in scripts:
        text = _text(path)
        if match := _SEED.search(text):
            line = text[: match.start()].count("\n") + 1
            return Value(
                "seed_argument",
                f"{match[1]}={{seed}}",
                f"{path.relative_to(root)}:{line} has the option {match[1]}",
            )
    scanned = ", ".join(str(path.relative_to(root)) for path in scripts[:3]) or "no training script was found"
    return Value(
        "seed_argument",
        None,
        f"no option --seed in {scanned}",
        "how is training seeded? Without seed_argument (for example `-o Global.seed={seed}`) losses are not "
        "compared bit for bit",
    )


def _prepare(root: Path) -> Value:
    path = root / "test_tipc" / "prepare.sh"
    if not path.is_file():
        return Value(
            "prepare",
            "",
            "test_tipc/prepare.sh is missing",
            "which script gets the data? None is run before training",
        )
    text = _text(path)
    if match := _DOWNLOADS.search(text):
        line = text[: match.start()].count("\n") + 1
        return Value("downloads", "cached", f"test_tipc/prepare.sh:{line} downloads; nodes keep the files")
    return Value("prepare", None, "test_tipc/prepare.sh (the default); it downloads nothing")


def _predictions(root: Path, files: Sequence[Path]) -> Iterator[Value]:
    """Value for the output of inference: without a known one, each leg of the first run is `failed`."""
    scripts = [name for name, _ in _scripts(files, lambda key: key == "inference").most_common()]
    if not scripts:
        return
    for name in scripts:
        if (root / name).is_file() and "auto_log" in _imported(_text(root / name)):
            yield Value("predictions", None, f"{name} imports auto_log, whose reports are known")
            return
    yield Value(
        "predictions",
        None,
        f"{scripts[0]} {'does not import auto_log' if (root / scripts[0]).is_file() else 'is missing'}",
        "what does inference print? Legs without an AutoLog report fail unless `predictions` describes their "
        "lines, or `prints: {inference: false}` states that they print none",
    )


def _logs(root: Path) -> Iterator[Value]:
    from tipcflow.parse.bulk.summary import summarize_log
    from tipcflow.parse.training.formats import FORMATS

    kinds: Counter[str] = Counter()
    lines, values, largest = 0, 0, 0.0
    logs = logs_of(root)
    for path in logs:
        with path.open("rb") as file:
            account = summarize_log([file.read(MOST_BYTES)])
        kinds.update(account.kinds)
        lines += account.lines - account.blank
        for key, series in account.series.items():
            if key.metric in _ACCURACIES and series.finite:
                values, largest = values + series.finite, max(largest, series.max)
    known = [(form, count) for form, count in kinds.most_common() if form in FORMATS]
    yield _format(len(logs), lines, known)
    yield _unit(values, largest)


def _format(logs: int, lines: int, formats: list[tuple[str, int]]) -> Value:
    hint = "see `tipcflow parse LOG` with a training log, and docs/reference/formats.md for an own format"
    if not logs:
        return Value("log_format", "auto", "the suite has no logs to measure", f"is the log format known? {hint}")
    where = f"of {counted(lines, 'line')} in {counted(logs, 'log')}"
    if not formats:
        return Value("log_format", "auto", f"recognizes none {where}", f"the log format is not known: {hint}")
    summary = ", ".join(f"{count} {form}" for form, count in formats)
    if len(formats) == 1:
        return Value("log_format", formats[0][0], f"recognizes {summary} {where}")
    return Value("log_format", "auto", f"recognizes {summary} {where}")


def _unit(values: int, largest: float) -> Value:
    if not values:
        return Value(
            "prints",
            None,
            "no accuracy in the logs",
            'are accuracies fractions (`prints: {accuracy: "1"}`) or percentages (`"%"`)? Without the key, the '
            "values decide",
        )
    if largest > 1:
        return Value("prints", {"accuracy": "%"}, f"the largest of {values} accuracies is {largest:g}")
    if values < 2 or largest == 0:
        return Value(
            "prints",
            None,
            f"{values} accuracies, the largest is {largest:g}",
            "are accuracies fractions or percentages?",
        )
    return Value("prints", {"accuracy": "1"}, f"the largest of {values} accuracies is {largest:g}")

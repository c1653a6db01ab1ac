"""Rules about the sections after the main part of a file."""

from collections.abc import Callable

from tipcflow.domain import ConfigError
from tipcflow.params.lint.subject import Hit, Rule, Severity, Subject
from tipcflow.params.sections import BENCHMARK, benchmark_section, find_section, infer_inputs

# Name in a dialect -> keys that such a line may have.
_KEYS = {
    "batch": ("batch_size",),
    "fp": ("fp_items",),
    "epoch": ("epoch", "total_iters", "iters", "iteration"),
    "models": ("model_type",),
    "workers": ("num_workers",),
    "profiler": ("--profiler_options",),
    "flags": ("flags",),
    "iters": ("max-iters",),
    "_": (),
}


def unreadable(subject: Subject) -> list[Hit]:
    """A line of a section that cannot be parsed."""
    hits = []
    readers: tuple[Callable[..., object], ...] = (infer_inputs, benchmark_section)
    for read in readers:
        try:
            read(subject.lines, file="")
        except ConfigError as error:
            hits.append(Hit(error.line, f"'{error.key}' cannot be parsed", f"write {error.expected}"))
    return hits


def shifted(subject: Subject) -> list[Hit]:
    """Benchmark scripts identify the lines of their section by position alone."""
    spec, section = subject.dialect.benchmark, find_section(subject.lines, BENCHMARK)
    if spec is None or section is None:
        return []
    for place, name in enumerate(spec.section):
        keys = _KEYS[name]
        line = section.lines[place] if place < len(section.lines) else None
        key = line.text.partition(":")[0].strip() if line else ""
        if keys and key not in keys:
            where = line.number if line else section.line
            actual = f"'{key}' is read instead" if line else "there is no line for it"
            message = f"the benchmark script expects '{keys[0]}' here: {actual}"
            return [Hit(where, message, "add the missing line: " + ", ".join(_expected(spec.section)))]
    return []


def _expected(names: tuple[str, ...]) -> list[str]:
    return [_KEYS[name][0] if _KEYS[name] else "an unused line" for name in names]


RULES = (
    Rule(
        "section-form", Severity.ERROR, "the script that reads these lines fails or uses other inputs", unreadable
    ),
    Rule(
        "section-shifted",
        Severity.ERROR,
        "the benchmark section is read by position: after a missing line all later lines are misread",
        shifted,
    ),
)

"""Rules about the sections behind a file's head."""

from collections.abc import Callable

from tipcflow.domain import ConfigError
from tipcflow.params.lint.subject import Hit, Rule, Severity, Subject
from tipcflow.params.sections import BENCHMARK, benchmark_section, find_section, infer_inputs

# Name in a dialect -> keys that such a line may have.
_KEYS = {
    "batch": ("batch_size",),
    "fp": ("fp_items",),
    "epoch": ("epoch", "total_iters"),
    "models": ("model_type",),
    "workers": ("num_workers",),
    "profiler": ("--profiler_options",),
    "flags": ("flags",),
    "iters": ("max-iters",),
    "_": (),
}


def unreadable(subject: Subject) -> list[Hit]:
    """A line of a section whose form nobody knows."""
    hits = []
    readers: tuple[Callable[..., object], ...] = (infer_inputs, benchmark_section)
    for read in readers:
        try:
            read(subject.lines, file="")
        except ConfigError as error:
            hits.append(Hit(error.line, f"'{error.key}' has a form that nothing reads", f"write {error.expected}"))
    return hits


def shifted(subject: Subject) -> list[Hit]:
    """The benchmark scripts know the lines of their section by position alone."""
    spec, section = subject.dialect.benchmark, find_section(subject.lines, BENCHMARK)
    if spec is None or section is None:
        return []
    for place, name in enumerate(spec.section):
        keys = _KEYS[name]
        line = section.lines[place] if place < len(section.lines) else None
        found = line.text.partition(":")[0].strip() if line else ""
        if keys and found not in keys:
            where = line.number if line else section.line
            said = f"'{found}' is taken for it" if line else "nothing is left for it"
            message = f"the benchmark script expects '{keys[0]}' here: {said}"
            return [Hit(where, message, "put in the line that is lacking: " + ", ".join(_expected(spec.section)))]
    return []


def _expected(names: tuple[str, ...]) -> list[str]:
    return [_KEYS[name][0] if _KEYS[name] else "a line that is not used" for name in names]


RULES = (
    Rule("section-form", Severity.ERROR, "what reads these lines fails, or takes other inputs", unreadable),
    Rule(
        "section-shifted",
        Severity.ERROR,
        "the section for benchmarks is read by position: a missing line gives every later one another meaning",
        shifted,
    ),
)

"""Keys of a dialect that give the script other words than spec, found by leaving out one key after the other."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tipcflow.domain import Command
from tipcflow.domain.run.names import ModeName
from tipcflow.params import Dialect
from tipcflow.params.modes import BENCHMARK
from tipcflow.plan.bash.benchmark import benchmark_calls
from tipcflow.plan.bash.script import script_calls
from tipcflow.plan.source.files import NoFiles
from tipcflow.plan.view.diff_text import plain_text

# The folder of a training in spec, without its ending.
_SAVE = "{LP}/{trainer}_gpus_{gpus}_autocast_{autocast}"


@dataclass(frozen=True)
class DialectKey:
    """A key whose value only the script uses, with the words that its commands have and lack because of it."""

    name: str
    has: frozenset[str]
    lacks: frozenset[str]

    def explains(self, here_only: str, there_only: str) -> bool:
        """Whether the key can explain the words of a difference that only script and only spec have."""
        return bool(self.has.intersection(here_only.split()) or self.lacks.intersection(there_only.split()))


def dialect_keys(text: str, *, file: str, dialect: Dialect, mode: str) -> tuple[DialectKey, ...]:
    """Return the keys of a dialect that change the script's commands for a params file.

    Args:
        text, file: the params file and its name for messages.
        mode: mode of the plans, with the benchmark case if one is selected.

    Raises:
        ConfigError: the file cannot be planned in this mode.
    """
    dialect = dialect.for_mode(ModeName.parse(mode).mode)
    words = _words(text, file, dialect, mode)
    keys = []
    for name, other in _without(dialect):
        changed = _words(text, file, other, mode)
        if changed != words:
            keys.append(DialectKey(name, frozenset(words - changed), frozenset(changed - words)))
    return tuple(keys)


def _without(dialect: Dialect) -> Iterator[tuple[str, Dialect]]:
    """Yield each key that spec does not use, and the dialect with spec's value instead."""
    plain: dict[str, object] = {
        "output": dialect.spec_output,
        "save": _SAVE,
        "suffix": {},
        "cpu_use_gpu": "",
        "device_clobbered": False,
        "model_dir_null": "",
        "no_export_weights": (),
        "weights_fallback": "",
    }
    for key, value in plain.items():
        if getattr(dialect, key) != value:
            yield key, dialect.model_copy(update={key: value})
    for name in dialect.bash_vars:
        others = {other: choices for other, choices in dialect.bash_vars.items() if other != name}
        yield f"bash_vars.{name}", dialect.model_copy(update={"bash_vars": others})
    for part, none in (("train", {}), ("cpu", ""), ("gpu", "")):
        spec = getattr(dialect, part)
        if spec.bash:
            yield f"{part}.bash", dialect.model_copy(update={part: spec.model_copy(update={"bash": none})})


def _words(text: str, file: str, dialect: Dialect, mode: str) -> "Counter[str]":
    """Return the words of all commands of the script, in the form that differences show."""
    requested, files = ModeName.parse(mode), NoFiles()
    calls = (
        benchmark_calls(text, file=file, dialect=dialect, word=requested.case, files=files)
        if requested.mode == BENCHMARK
        else script_calls(text, file=file, dialect=dialect, mode=requested.mode, files=files)
    )
    return Counter(
        word for call in calls for word in plain_text(Command(text=call.text, cwd=call.cwd), on_gpu=False).split()
    )

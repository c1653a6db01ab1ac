"""Template rendering: a dialect's templates, filled in with variables and slots.

`{name}` is the variable of that name, otherwise the slot's value; `{slot=}` is `key=value` of the slot;
`{slot=name}` its key with another value; `{!slot=name}` the same even if key or value is null; `{?slot=name}`
the same even if the value is null, in the script's semantics only; `{slot@}` the key alone.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from tipcflow.params.modes import BENCHMARK
from tipcflow.params.specs import InferSpec
from tipcflow.params.values import argument, split_line
from tipcflow.plan.source.reader import Reader

# Placeholder for the absolute path of the suite's checkout in the script's commands.
ROOT = "$ROOT"

_PLACE = re.compile(r"\{(?P<force>[!?]?)(?P<name>\w+)(?P<set>=(?P<value>\w*))?(?P<key>@)?\}")


@lru_cache(maxsize=4096)
def _tokens(template: str) -> tuple[tuple[str, str, str, str], ...]:
    """Split a template into (literal text, name, name of the value or '-' or '@', forced) pieces."""
    pieces = []
    end = 0
    for place in _PLACE.finditer(template):
        value = (place["value"] or place["name"]) if place["set"] else "@" if place["key"] else "-"
        pieces.append((template[end : place.start()], place["name"], value, place["force"]))
        end = place.end()
    return (*pieces, (template[end:], "", "-", ""))


def base_variables(reader: Reader) -> dict[str, str]:
    """Return the variables of a whole run: those of the mode, and the model's file name."""
    dialect, mode = reader.dialect, reader.mode
    variables = {"mode": mode, "launch": "", "root": ROOT if reader.bash else ".", "model": model_name(reader)}
    choosers = {**dialect.by_mode, **(dialect.bash_vars if reader.bash else {})}
    for name, choices in choosers.items():
        match = next((part for part in choices if part != "*" and _applies(part, reader)), "*")
        if match in choices:
            variables[name] = Scope(reader, variables).render(choices[match])
    model = variables["model"]
    for old, new in dialect.model_replace.items():
        model = model.replace(old, new)
    return {**variables, "model_file": model}


def model_name(reader: Reader) -> str:
    """Return the model's name in paths; spec replaces spaces, which split words, by `_`."""
    name = reader.value("model")
    return name if reader.bash else re.sub(r"\s+", "_", name)


def amp_variables(reader: Reader, word: str) -> dict[str, str]:
    """Return the variables that a precision word sets."""
    dialect, benchmark = reader.dialect, reader.mode == BENCHMARK
    more = {
        name: choices.get(word, "") if benchmark or name not in dialect.benchmark_only else ""
        for name, choices in dialect.amp_vars.items()
    }
    model = reader.value("model")
    extra = [rule.text for rule in dialect.model_args if rule.model in model and word in rule.words]
    return {
        "amp": dialect.amp.get(word, dialect.amp.get("*", "")),
        "model_args": " ".join(extra),
        "last_args": _last_args(reader) if benchmark else "",
        **more,
    }


def _last_args(reader: Reader) -> str:
    """Return arguments from the file's last line, `key:value;key:value`."""
    pairs = last_line(reader.params.lines[-1].text if reader.params.lines else "")
    wanted = reader.dialect.last_line
    return " ".join(wanted[key].format(value) for key, value in pairs if key in wanted)


def last_line(text: str) -> list[tuple[str, str]]:
    """Return the pairs of a line `key:value;key:value`."""
    return [split_line(pair, "first") for pair in text.split(";")]


def _applies(condition: str, reader: Reader) -> bool:
    """Whether the mode's name contains the text, or a slot has a value (`slot=value`)."""
    slot, equals, value = condition.partition("=")
    return reader.value(slot) == value if equals else condition in reader.mode


class Scope:
    """Variables on top of a reader. `group` is the index of the device group, for paired slots."""

    def __init__(self, reader: Reader, variables: Mapping[str, str], *, group: int = 0) -> None:
        self.reader = reader
        self.variables = dict(variables)
        self.group = group

    def within(self, **variables: str) -> "Scope":
        """Return a scope with additional variables."""
        return Scope(self.reader, {**self.variables, **variables}, group=self.group)

    def get(self, name: str) -> str:
        """Return the variable, or the slot's value by its kind; '' if neither exists."""
        value = self.variables.get(name)
        return self.reader.meant(name, self.group) if value is None else value

    def key(self, slot: str) -> str:
        """Return the slot's key, or the dialect's replacement in this mode (variable `slot@`)."""
        return self.variables.get(f"{slot}@") or self.reader.key(slot)

    def render(self, template: str) -> str:
        """Return the template with all placeholders filled in."""
        parts = []
        for literal, name, value, forced in _tokens(template):
            parts.append(literal)
            if not name:
                continue
            if value == "-":
                parts.append(self.get(name))
                continue
            key = self.key(name)
            if value == "@":
                parts.append(key)
            elif forced == "!" or (forced == "?" and key != "null" and self.reader.bash):
                parts.append(f"{key}={self.get(value)}")
            elif forced != "!" and (key or self.reader.bash):
                parts.append(argument(key, self.get(value)))
        return "".join(parts)


def weights_scope(scope: Scope) -> Scope:
    """Return the scope with the path of a training's weights, and the weights argument of the export."""
    dialect, model = scope.reader.dialect, scope.reader.value("model")
    template = next((where for part, where in dialect.weights_of.items() if part in model), dialect.weights)
    weights = scope.render(template)
    lost = scope.reader.bash and any(part in model for part in dialect.no_export_weights)
    return scope.within(weights=weights, export_weights="" if lost else weights)


def with_infer_vars(scope: Scope) -> Scope:
    """Return the scope with the additional variables of the dialect's inference commands."""
    templates = scope.reader.dialect.infer_vars
    return scope.within(**{name: scope.render(template) for name, template in templates.items()})


def leg_scope(scope: Scope, spec: InferSpec, word: str, leg: dict[str, str]) -> Scope:
    """Return the scope of one inference combination."""
    inner = scope.within(device_word=word, **leg)
    return inner.within(**{name: inner.render(template) for name, template in spec.vars.items()})

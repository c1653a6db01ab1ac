"""Dialects by name: those of the package, and those of users in the folder of the configuration."""

from functools import cache, lru_cache
from importlib import resources
from typing import Any

from pydantic import ValidationError

from tipcflow.config.loader import first_error
from tipcflow.config.own_dialects import Source, file_stem, own_dialect, own_names, own_state
from tipcflow.config.yaml_text.shipped import own_yaml
from tipcflow.domain import ConfigError
from tipcflow.params.dialect import Dialect
from tipcflow.params.layout import merged
from tipcflow.params.registry.check import check_dialect

# Kind of file (see `tipcflow.params.kinds`) -> script families that may read it.
_FAMILIES = {
    "klquant": ("ptq", "infer_python"),
    "infer_python": ("infer_python", "ptq"),
    "ptq": ("ptq",),
    "paddle2onnx": ("paddle2onnx",),
    "pipeline": ("pipeline",),
    "dy2static": ("dy2static",),
}


def known_dialects() -> tuple[str, ...]:
    """Return the names of all dialects, in alphabetical order; a broken file counts by the name of the file."""
    own = (_name_in(stem) for stem in own_names())
    return tuple(sorted({*_shipped(), *own}))


def load_dialect(name: str) -> Dialect:
    """Return the dialect of that name, for example `models/template`.

    Raises:
        ConfigError: the dialect does not exist (the message lists the existing ones), or its file is wrong; other
            files do not matter.
    """
    if name in _shipped():
        return _shipped_dialect(name)
    return _own_dialect(name, own_state())


def family_dialects(name: str, kind: str) -> tuple[str, ...]:
    """Return the dialects of a suite's other scripts that may read files of a kind, most likely first.

    Raises:
        ConfigError: the dialect does not exist, or the file of another script of this suite is wrong.
    """
    return _family(name, kind, own_state())


@lru_cache(maxsize=512)
def _family(name: str, kind: str, state: object) -> tuple[str, ...]:
    """Return the family. Cached, because each plan needs it; `state` changes when a file of users has changed."""
    suite = load_dialect(name).suite
    others = [_shipped_dialect(other) for other in sorted(_shipped())]
    for stem in own_names():
        try:
            others.append(load_dialect(_name_in(stem)))
        except ConfigError:
            if stem.startswith(f"{file_stem(suite)}_"):
                raise
    same_suite = [dialect for dialect in others if dialect.family and dialect.suite == suite]
    return tuple(
        dialect.name for family in _FAMILIES.get(kind, ()) for dialect in same_suite if dialect.family == family
    )


def _name_in(stem: str) -> str:
    """Return the name of the dialect in a file; the name of the file if it cannot be read."""
    try:
        source = own_dialect(stem)
    except ConfigError:
        return stem
    return str(source.data["name"]) if source else stem


@cache
def _shipped_dialect(name: str) -> Dialect:
    return Dialect.model_validate(_resolved(name, Source(_shipped()[name]), ()))


@lru_cache(maxsize=256)
def _own_dialect(name: str, state: object) -> Dialect:
    """Return the checked dialect of a user. `state` changes when a file of users has changed."""
    source = own_dialect(name)
    if source is None or source.data.get("name") != name:
        raise ConfigError(
            "there is no such dialect", key="dialect", found=name, expected=", ".join(known_dialects())
        )
    data = _resolved(name, source, ())
    try:
        dialect = Dialect.model_validate(data)
    except ValidationError as error:
        raise first_error(error, source.lines or {}, source.file, Dialect) from error
    try:
        check_dialect(dialect, source)
    except ConfigError as error:
        if error.file:
            raise
        raise source.error(error.message, "layout") from error  # the layout does not exist
    return dialect


def _resolved(name: str, source: Source, seen: tuple[str, ...]) -> dict[str, Any]:
    """Return a dialect's data merged over that of the dialect it extends."""
    data = {key: value for key, value in source.data.items() if key != "extends"}
    base = source.data.get("extends")
    if not base:
        return data
    if base in (*seen, name):
        raise source.error("the dialect extends itself", "extends", found=str(base), expected="another dialect")
    below = Source(_shipped()[base]) if base in _shipped() else own_dialect(str(base))
    if below is None:
        expected = f"one of {', '.join(known_dialects())}"
        raise source.error("there is no such dialect", "extends", found=str(base), expected=expected)
    return merged(_resolved(str(base), below, (*seen, name)), data)


@lru_cache(maxsize=1)
def _shipped() -> dict[str, dict[str, Any]]:
    folder = resources.files("tipcflow.params") / "dialects"
    loaded = (
        own_yaml(entry.read_text(encoding="utf-8")) for entry in folder.iterdir() if entry.name.endswith(".yaml")
    )
    return {data["name"]: data for data in loaded}

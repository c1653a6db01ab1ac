"""Which chain a text names: the rule of every command that takes a CHAIN."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tipcflow.domain import ConfigError
from tipcflow.domain.numbers.units import first_names

if TYPE_CHECKING:
    from tipcflow.store import Store

_LISTED = 10


def matching_chains(names: Sequence[str], text: str) -> list[str]:
    """Return the chains that a text names; case does not matter, except for the first rule.

    1. the chain of exactly that name,
    2. otherwise the chains with these components (`PaddleClas/ResNet50`, `ResNet50/train_infer_python`),
    3. otherwise the chains whose name contains the text.
    """
    if text in names or not text:
        return [text] if text else []
    wanted = text.lower()
    parts = [name for name in names if f"/{wanted.strip('/')}/" in f"/{name.lower()}/"]
    return parts or [name for name in names if wanted in name.lower()]


def only_chain(names: Sequence[str], text: str, *, key: str = "CHAIN") -> str:
    """Return the one chain that a text names.

    Args:
        key: the argument or option, for the message.

    Raises:
        ConfigError: no chain matches, or several do; lists them.
    """
    matches = matching_chains(names, text)
    if len(matches) == 1:
        return matches[0]
    listed = sorted(matches or names)
    raise ConfigError(
        f"{len(matches)} chains match" if matches else "no run of a chain with this name",
        key=key,
        found=text,
        expected=f"one of {first_names(listed, _LISTED)}" if listed else "a chain; the database has no runs",
    )


def find_chain(store: "Store", text: str, *, key: str = "CHAIN") -> str:
    """Return the one chain with runs that a text names.

    Raises:
        ConfigError: no chain matches, or several do; lists them.
    """
    return only_chain(store.runs.chains(), text, key=key)

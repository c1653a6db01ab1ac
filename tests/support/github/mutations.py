"""Payloads with fields removed, or replaced by values of another type."""

import copy
import random
from typing import Any

VALUES: tuple[Any, ...] = (None, "", 0, -1, [], {}, "x" * 500, 1e308, True, [None], {"a": None}, "\ud800")


def mutate(value: Any, chance: random.Random) -> None:
    """Change one to three places anywhere in a payload."""
    for _ in range(chance.randint(1, 3)):
        here = value
        while True:
            keys: list[Any] = list(here) if isinstance(here, dict) else list(range(len(here)))
            if not keys:
                break
            key = chance.choice(keys)
            if isinstance(here[key], dict | list) and here[key] and chance.random() < 0.7:
                here = here[key]
                continue
            if chance.random() < 0.3:
                del here[key]
            else:
                here[key] = copy.deepcopy(chance.choice(VALUES))
            break

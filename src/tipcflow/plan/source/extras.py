"""Extra commands that a suite's script runs for some files."""

from collections.abc import Iterator

from tipcflow.params.specs import ExtraSpec
from tipcflow.params.values import NOTHING
from tipcflow.plan.source.reader import Reader


def extras_for(reader: Reader, before: str) -> Iterator[ExtraSpec]:
    """Yield the extra commands of the reader's file that precede a step of this kind."""
    for spec in reader.dialect.extras:
        keys = all(reader.key(slot) == key for slot, key in spec.slot_key.items())
        absent = any(reader.value(slot) in NOTHING for slot in spec.unless)
        if spec.before == before and spec.model in reader.value("model") and keys and not absent:
            yield spec

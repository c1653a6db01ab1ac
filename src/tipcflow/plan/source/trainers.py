"""Trainer lookup: script and export slot of a trainer's name."""

import re
from dataclasses import dataclass

from tipcflow.domain import Compression
from tipcflow.params.sections import STATIC
from tipcflow.params.values import split_line
from tipcflow.plan.source.reader import Reader

# Names of trainers that compress their model; the slot alone does not show it, as files use slots for others.
_QUANTIZES, _PRUNES = re.compile("pact|qat|quant"), re.compile("fpgm|prune")


@dataclass(frozen=True)
class Trainer:
    """A trainer of a params file.

    `slot` is the slot of its script; `known` is False for a fallback; `static` are the arguments of a to_static
    training with the norm script.
    """

    name: str
    slot: str
    script: str
    export: str
    quant: bool
    from_norm: str
    known: bool
    static: str = ""

    @property
    def is_norm(self) -> bool:
        """Whether trainers with `from_norm` start from this trainer's weights."""
        return self.slot == "norm_train" and self.known and not self.static

    @property
    def compression(self) -> Compression | None:
        """Return what the trainer's export declares about its model."""
        if self.quant and _QUANTIZES.search(self.name):
            return Compression.QUANTIZED
        return Compression.PRUNED if _PRUNES.search(self.name) else None


def resolve_trainer(reader: Reader, name: str) -> Trainer:
    """Return the first trainer slot whose key is `name`, in the dialect's order; otherwise the norm trainer.

    The fallback for an unknown name is silent; `known` is False.
    """
    specs = reader.dialect.trainers
    static_key, static_value = to_static(reader)
    taken = [slot for slot, spec in specs.items() if slot != "norm" and reader.key(spec.train) == name]
    if static_key and name == static_key and (not taken or taken[0] in ("train1", "train2")):
        norm = specs["norm"]
        return Trainer(
            name=name,
            slot=norm.train,
            script=reader.value(norm.train),
            export=reader.value(norm.export),
            quant=False,
            from_norm="no",
            known=True,
            static=static_value,
        )
    chosen = taken[0] if taken else "norm"
    spec = specs[chosen]
    return Trainer(
        name=name,
        slot=spec.train,
        script=reader.value(spec.train),
        export=reader.value(spec.export),
        quant=spec.quant,
        from_norm=spec.from_norm,
        known=chosen != "norm" or name in (reader.key(spec.train), reader.dialect.norm_alias or None),
    )


def to_static(reader: Reader) -> tuple[str, str]:
    """Return key and value of the line with a to_static trainer's arguments; empty if the dialect has none.

    The scripts use the title's physical line number as an index among the non-empty lines: with an empty line
    before the title they read another line, and without the section they read the file's first line.
    """
    dialect = reader.dialect
    if dialect.to_static == "slot":
        return reader.key("train1"), reader.value("train1")
    if dialect.to_static != "tail":
        return "", ""
    lines = reader.params.lines
    title = next((line for line in lines if STATIC in line.text), None)
    if title is None:
        index = 0 if reader.bash else len(lines)
    else:
        index = title.number if reader.bash else title.index + 1
    return split_line(lines[index].text, dialect.split) if index < len(lines) else ("", "")

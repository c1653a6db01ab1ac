"""Which script and which export belong to a trainer's name."""

from dataclasses import dataclass

from tipcflow.plan.reader import Reader


@dataclass(frozen=True)
class Trainer:
    """A trainer of a params file. `slot` is the slot whose script it runs; `known` is False for a fallback."""

    name: str
    slot: str
    script: str
    export: str
    quant: bool
    from_norm: bool
    known: bool

    @property
    def is_norm(self) -> bool:
        """Whether its weights are what trainers with `from_norm` start from."""
        return self.slot == "norm_train" and self.known


def resolve_trainer(reader: Reader, name: str) -> Trainer:
    """The first trainer slot whose key is `name`, in the dialect's order; else the norm trainer.

    Any unknown name becomes the norm trainer without a word; `known` tells.
    """
    specs = reader.dialect.trainers
    chosen = next(
        (slot for slot, spec in specs.items() if slot != "norm" and reader.key(spec.train) == name), "norm"
    )
    spec = specs[chosen]
    return Trainer(
        name=name,
        slot=spec.train,
        script=reader.value(spec.train),
        export=reader.value(spec.export),
        quant=spec.quant,
        from_norm=spec.from_norm,
        known=chosen != "norm" or reader.key(spec.train) == name,
    )

"""Variants that a file declares, in spec semantics."""

from collections.abc import Iterator

from tipcflow.domain import ConfigError, Variant
from tipcflow.params.values import NOTHING
from tipcflow.plan.source.call import Point, variant_id
from tipcflow.plan.source.groups import Group, classify_spec
from tipcflow.plan.source.reader import Reader
from tipcflow.plan.source.trainers import Trainer, resolve_trainer


def spec_groups(reader: Reader) -> list[Group]:
    """Return the device groups of gpu_list.

    Raises:
        ConfigError: the list is empty or an entry names no devices.
    """
    file, line = reader.params.file, reader.line("gpu_list")
    groups = [
        classify_spec(index, text, file=file, line=line) for index, text in enumerate(reader.items("gpu_list"))
    ]
    if not groups:
        _empty(reader, "gpu_list", "at least one entry such as 0 or 0,1")
    return groups


def spec_trainers(reader: Reader) -> list[Trainer]:
    """Return the trainers that the file lists and has a script for.

    Raises:
        ConfigError: a name has no line in the file, or no listed trainer has a script.
    """
    trainers = [resolve_trainer(reader, name) for name in reader.items("trainers")]
    for trainer in trainers:
        if not trainer.known:
            slots = [spec.train for spec in reader.dialect.trainers.values()]
            names = [key for key in (reader.key(slot) for slot in slots) if key not in NOTHING]
            raise ConfigError(
                "the file has no line for this trainer",
                file=reader.params.file,
                line=reader.line("trainers"),
                key="trainer",
                found=trainer.name or "nothing",
                expected="one of " + ", ".join(names),
            )
    usable = [trainer for trainer in trainers if trainer.script not in NOTHING]
    if not usable:
        _empty(reader, "trainers", "at least one trainer that has a script")
    return usable


def spec_points(reader: Reader, groups: list[Group], trainers: list[Trainer]) -> Iterator[Point]:
    """Yield device group x precision x trainer in the script's loop order; `folder` is the variant's id."""
    for group in groups:
        words = reader.items("autocast") if reader.has("autocast") else [""]
        if not words:
            _empty(reader, "autocast", "null or a list of precisions")
        for autocast in words:
            for trainer in trainers:
                word = autocast or reader.dialect.autocast_of.get(trainer.name, "False")
                yield Point(group, word, trainer, variant_id(trainer.name, group, word))


def as_variant(point: Point) -> Variant:
    """Return a point as a domain `Variant`."""
    group = point.group
    return Variant(
        id=point.folder,
        trainer=point.trainer.name,
        precision="" if point.autocast in ("null", "False") else point.autocast,
        devices=group.ids,
        node_count=group.nodes,
        world_size=world_size(group),
    )


def world_size(group: Group) -> int:
    """Return the number of ranks of a training on all nodes."""
    return group.nodes * max(1, len(group.ids))


def _empty(reader: Reader, slot: str, expected: str) -> None:
    raise ConfigError(
        "no usable entry, so nothing would run",
        file=reader.params.file,
        line=reader.line(slot),
        key=slot,
        found=reader.value(slot) or "nothing",
        expected=expected,
    )

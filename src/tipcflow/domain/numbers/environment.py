"""Environment class: identifies comparable runs by a readable, stable key.

The key is not a hash of all facts, because a kernel update or another host name must not break a history. The
subject under test (framework version, suite commit) is not in the key either; `domain.changes` reports it when a
metric changed. The key's form is part of every history and baseline in the database: a change of the form
requires a migration of both.
"""

import re

from tipcflow.domain.base import Frozen

# Field -> its display name, in the order of the key.
_CALLED = {
    "device": "device",
    "hardware": "hardware",
    "nodes": "number of nodes",
    "ranks": "number of processes",
    "driver": "GPU driver",
    "cuda": "CUDA",
    "image": "image",
}
_ENDS = {"nodes": "-nodes", "ranks": "-ranks"}
_BEGINS = {"driver": "driver-", "cuda": "cuda-", "image": "image-"}


class EnvironmentClass(Frozen):
    """The parts of a key such as `gpu/8x-tesla-v100/2-nodes/16-ranks/driver-535/cuda-12.6`.

    An unknown part is ''. Different hardware (or versions) among a run's nodes is joined by `+`.

    Attributes:
        device: `cpu` or `gpu`.
        hardware: GPUs per node and their model, or the CPU's model and its number of cores.
        nodes, ranks: number of each.
        driver: the GPU driver's major version; '' without GPUs.
        cuda: CUDA's major and minor version; '' without GPUs.
        image: the container image's name without tag and digest; '' without a container.
    """

    device: str = ""
    hardware: str = ""
    nodes: str = ""
    ranks: str = ""
    driver: str = ""
    cuda: str = ""
    image: str = ""

    @property
    def key(self) -> str:
        """Return the key without unknown parts."""
        parts = [self.device, self.hardware]
        parts += [f"{getattr(self, name)}{end}" for name, end in _ENDS.items() if getattr(self, name)]
        parts += [f"{begin}{getattr(self, name)}" for name, begin in _BEGINS.items() if getattr(self, name)]
        return "/".join(part for part in parts if part)

    @classmethod
    def of(cls, key: str) -> "EnvironmentClass":
        """Return the parts of a key; for other text, the recognized parts."""
        fields: dict[str, str] = {}
        rest = []
        for part in filter(None, key.split("/")):
            ended = next((name for name, end in _ENDS.items() if part.endswith(end)), "")
            begun = next((name for name, begin in _BEGINS.items() if part.startswith(begin)), "")
            if ended:
                fields[ended] = part.removesuffix(_ENDS[ended])
            elif begun:
                fields[begun] = part.removeprefix(_BEGINS[begun])
            else:
                rest.append(part)
        return cls(**dict(zip(("device", "hardware"), rest, strict=False)), **fields)


def image_name(image: str) -> str:
    """Return the image's name in the key: without tag and digest, which often contain the framework's version."""
    folder, slash, name = image.partition("@")[0].rpartition("/")
    return re.sub(r"[^a-z0-9.]+", "-", f"{folder}{slash}{name.partition(':')[0]}".lower()).strip("-")


def differences(key: str, other: str) -> list[str]:
    """Return the parts in which two environments differ, as text; empty for the same class."""
    first, second = EnvironmentClass.of(key), EnvironmentClass.of(other)
    return [
        f"{called} {getattr(second, name) or 'unknown'} instead of {getattr(first, name) or 'unknown'}"
        for name, called in _CALLED.items()
        if getattr(first, name) != getattr(second, name)
    ]


def unlike_before(key: str, before: str, run: str) -> str:
    """Return a message if a run's environment differs from the previous run's; '' if equal or unknown.

    Args:
        before: the class of the previous run; `run` is its id.
    """
    if not key or not before or key == before:
        return ""
    return f"{', '.join(differences(before, key))}: not compared with {run}, the run before"

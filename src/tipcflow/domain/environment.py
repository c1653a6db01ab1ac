"""The environment class: what makes two runs comparable, as a readable, stable key.

Not a hash of everything: a kernel update or another host name must not break a history. The key's form is part of
every history and baseline in the database: it may only be changed together with a migration of both.
"""

from tipcflow.domain.base import Frozen

# Field -> what a person calls it, in the order of the key.
_CALLED = {
    "device": "device",
    "hardware": "hardware",
    "nodes": "number of nodes",
    "ranks": "number of processes",
    "framework": "framework",
    "driver": "GPU driver",
}
_ENDS = {"nodes": "-nodes", "ranks": "-ranks"}
_DRIVER = "driver-"


class EnvironmentClass(Frozen):
    """The parts of a key such as `gpu/8x-tesla-v100/2-nodes/16-ranks/paddlepaddle-gpu-3.3/driver-535`.

    What is not known is ''. Several kinds of hardware (or versions) among a run's nodes are joined by `+`.

    Attributes:
        device: `cpu` or `gpu`.
        hardware: GPUs per node and their model, or the CPU's model and its number of cores.
        nodes, ranks: how many of each, as numbers.
        framework: its name with major and minor version.
        driver: the GPU driver's major version; '' without GPUs.
    """

    device: str = ""
    hardware: str = ""
    nodes: str = ""
    ranks: str = ""
    framework: str = ""
    driver: str = ""

    @property
    def key(self) -> str:
        """The key; parts that are not known are left out."""
        parts = [
            self.device,
            self.hardware,
            f"{self.nodes}-nodes" if self.nodes else "",
            f"{self.ranks}-ranks" if self.ranks else "",
            self.framework,
            f"{_DRIVER}{self.driver}" if self.driver else "",
        ]
        return "/".join(part for part in parts if part)

    @classmethod
    def of(cls, key: str) -> "EnvironmentClass":
        """The parts of a key; of text that is none, what can be told."""
        found: dict[str, str] = {}
        rest = []
        for part in filter(None, key.split("/")):
            named = next((name for name, end in _ENDS.items() if part.endswith(end)), "")
            if named:
                found[named] = part.removesuffix(_ENDS[named])
            elif part.startswith(_DRIVER):
                found["driver"] = part.removeprefix(_DRIVER)
            elif found:
                found["framework"] = part
            else:
                rest.append(part)
        return cls(**dict(zip(("device", "hardware"), rest, strict=False)), **found)


def differences(key: str, other: str) -> list[str]:
    """In which parts another environment differs from one, in words; empty when they are the same class."""
    one, two = EnvironmentClass.of(key), EnvironmentClass.of(other)
    return [
        f"{called} {getattr(two, name) or 'unknown'} instead of {getattr(one, name) or 'unknown'}"
        for name, called in _CALLED.items()
        if getattr(one, name) != getattr(two, name)
    ]


def unlike_before(key: str, before: str, run: str) -> str:
    """That a run has another environment than the one before it, in words; '' when it has the same, or one of them
    is not known.

    Args:
        before: the class of the run before, `run` its id.
    """
    if not key or not before or key == before:
        return ""
    return f"{', '.join(differences(before, key))}: not compared with {run}, the run before"

"""Node facts of a run -> its environment class.

Other differences are stored with the run's node facts and shown.
"""

import re
from collections.abc import Iterable, Sequence

from tipcflow.domain import NodeFacts
from tipcflow.domain.numbers.environment import EnvironmentClass, image_name


def environment_class(
    facts: Sequence[NodeFacts], *, device: str, world_size: int, images: Iterable[str] = ()
) -> str:
    """Return for example `cpu/amd-epyc-7b13-2/2-nodes/4-ranks`; '' without node facts.

    Args:
        facts: facts of the nodes that the run uses.
        device: device of its cluster.
        world_size: number of processes of its largest training.
        images: container images of the steps, '' for a node without one.
    """
    if not facts:
        return ""
    drivers = {fact.driver.split(".")[0] for fact in facts if fact.driver}
    return EnvironmentClass(
        device=device,
        hardware=_joined({_hardware(fact, device) for fact in facts}),
        nodes=str(len(facts)),
        ranks=str(world_size),
        driver=_joined(drivers) if device == "gpu" else "",
        cuda=_joined({_minor(fact.cuda) for fact in facts if fact.cuda}) if device == "gpu" else "",
        image=_joined({image_name(image) for image in images if image}),
    ).key


def _joined(values: set[str]) -> str:
    return "+".join(sorted(values))


def _hardware(fact: NodeFacts, device: str) -> str:
    if device == "gpu" and fact.gpus:
        return f"{len(fact.gpus)}x-{_slug(str(fact.gpus[0].get('name', 'gpu')))}"
    return f"{_slug(fact.cpu_model) or 'cpu'}-{fact.cpu_count}"


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _slug(text: str) -> str:
    text = re.sub(r"\((?:r|tm)\)|@.*$|\bcpu\b|\bprocessor\b", " ", text.lower())
    return re.sub(r"[^a-z0-9.]+", "-", text).strip("-")
